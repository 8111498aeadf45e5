package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"ddp/runtime/elastic"
	"ddp/runtime/launch"
	"ddp/runtime/rendezvous"
)

// meetingConf is --rdzv-conf.
type meetingConf struct {
	patience, lastCall, lease time.Duration // lease 0: the default
	lead                      rendezvous.Leadership
}

// parseMeetingConf reads torchrun's keys; those that mean nothing here are let pass.
func parseMeetingConf(text string) (meetingConf, error) {
	c := meetingConf{patience: 10 * time.Minute, lastCall: elastic.LastCall}
	beat, beats := 5.0, 3.0 // torchrun's
	for _, pair := range strings.Split(text, ",") {
		key, value, _ := strings.Cut(strings.TrimSpace(pair), "=")
		number, err := strconv.ParseFloat(value, 64)
		seconds := time.Duration(number * float64(time.Second))
		switch key {
		case "", "read_timeout", "close_timeout", "heartbeat_timeout", "store_type", "protocol", "rank", "use_agent_store":
			continue
		case "timeout", "join_timeout":
			c.patience = seconds
		case "last_call_timeout":
			c.lastCall = seconds
		case "keep_alive_interval":
			beat = number
			c.lease = time.Duration(beat * beats * float64(time.Second))
		case "keep_alive_max_attempt":
			beats = number
			c.lease = time.Duration(beat * beats * float64(time.Second))
		case "is_host":
			var here bool
			here, err = strconv.ParseBool(value)
			c.lead = rendezvous.Follows
			if here {
				c.lead = rendezvous.Leads
			}
		default:
			return c, launchUsage("--rdzv-conf has no key %q (join_timeout, last_call_timeout, is_host, keep_alive_interval, keep_alive_max_attempt)", key)
		}
		if err != nil || number < 0 || key != "is_host" && seconds == 0 && key != "last_call_timeout" {
			return c, launchUsage("--rdzv-conf: %s is %q", key, value)
		}
	}
	return c, nil
}

// meeting is where other nodes come in.
type meeting struct {
	guests chan elastic.Guest
	first  []elastic.Guest
	l      net.Listener
	wg     sync.WaitGroup
}

// meet finds the other nodes and runs the job, as its leader or as one of them.
func (in *invocation) meet(l *launchPlan) error {
	endpoint := l.endpoint
	if endpoint == "" {
		port := l.masterPort
		if port == 0 {
			port = defaultMasterPort
		}
		endpoint = net.JoinHostPort(strings.Trim(l.masterAddr, "[]"), strconv.Itoa(port))
	}
	if _, port, err := net.SplitHostPort(endpoint); err != nil {
		endpoint = net.JoinHostPort(strings.Trim(endpoint, "[]"), strconv.Itoa(defaultMasterPort))
	} else if port == "0" {
		return launchUsage("--rdzv-endpoint is %q: nodes can only meet at a port that they know", endpoint)
	}
	secret, err := in.sharedSecret(l, endpoint)
	if err != nil {
		return err
	}
	how := l.meeting.lead
	if how == rendezvous.Found && l.backend == "static" {
		how = rendezvous.Follows
		if l.nodeRank == 0 {
			how = rendezvous.Leads
		}
	}
	listener, err := rendezvous.Lead(context.Background(), endpoint, how)
	if err != nil {
		return usageError{fmt.Errorf("launch: %w", err)}
	}
	if listener == nil {
		return in.follow(l, endpoint, secret)
	}
	return in.receive(l, listener, secret)
}

// sharedSecret is the file's, or one that a warning comes with.
func (in *invocation) sharedSecret(l *launchPlan, endpoint string) ([]byte, error) {
	if l.secretFile != "" {
		return in.readSecret(l.secretFile)
	}
	in.note(fmt.Sprintf("whoever reaches %s and guesses --rdzv-id %q can join this job or pose as its leader; --rdzv-secret-file FILE, the same on all nodes, prevents it", endpoint, l.id))
	return rendezvous.WeakSecret(l.id), nil
}

// receive leads: it waits for the others and runs the job.
func (in *invocation) receive(l *launchPlan, listener net.Listener, secret []byte) error {
	ctx, cancel := context.WithCancelCause(context.Background())
	m := &meeting{guests: make(chan elastic.Guest), l: listener}
	m.wg.Go(func() { elastic.Receive(ctx, listener, secret, m.guests, func(err error) { in.note(err.Error()) }) })
	defer func() {
		listener.Close()
		cancel(nil)
		m.wg.Wait()
	}()
	signals, stop := notifyStop()
	gathered := make(chan struct{})
	m.wg.Go(func() {
		select {
		case s := <-signals:
			cancel(exitError{launch.ExitSignal(s.(syscall.Signal))})
		case <-gathered:
		}
	})
	limits := rendezvous.Limits{Least: l.least - 1, Most: l.most - 1, Patience: l.meeting.patience, LastCall: l.meeting.lastCall}
	var err error
	m.first, err = rendezvous.Gather(ctx, m.guests, limits)
	close(gathered)
	stop()
	if err == nil {
		return in.lead(l, m)
	}
	for _, g := range m.first {
		g.Close()
	}
	var late *rendezvous.TimeoutError
	if errors.As(err, &late) {
		in.note(err.Error())
		return exitError{launch.ExitRendezvous}
	}
	return err
}

// follow is a node that another one leads.
func (in *invocation) follow(l *launchPlan, endpoint string, secret []byte) error {
	signals, stop := notifyStop()
	defer stop()
	v := elastic.Visitor{Ranks: l.perNode, Place: l.nodeRank, Local: l.localAddr, Command: l.command, Role: l.role}
	err := in.visit(endpoint, secret, v, l.meeting.patience)
	var ended *elastic.JobError
	var lost *elastic.LostError
	switch {
	case len(signals) > 0:
		return exitError{launch.ExitSignal((<-signals).(syscall.Signal))}
	case errors.As(err, &ended):
		in.note(err.Error())
		return exitError{ended.Code}
	case errors.As(err, &lost):
		in.note(err.Error())
		return exitError{launch.ExitRendezvous}
	}
	return err
}
