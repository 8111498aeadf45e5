package cli

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"ddp/jobs"
	"ddp/runtime/elastic"
)

// newSecret is a random text that nobody guesses.
func newSecret() []byte { return []byte(rand.Text() + rand.Text()) }

// finder asks cluster.discover which nodes there are and has the job take in
// and let go accordingly.
type finder struct {
	job      *jobs.Job
	requests chan<- elastic.Request
	note     func(string)
	known    map[string]bool // nodes that the command has named, or the job lists
	wg       sync.WaitGroup
}

// startFinder asks until ctx ends; without cluster.discover it does nothing.
func startFinder(ctx context.Context, job *jobs.Job, requests chan<- elastic.Request, note func(string)) *finder {
	f := &finder{job: job, requests: requests, note: note, known: map[string]bool{}}
	if job.Cluster.Discover == "" {
		return f
	}
	for _, n := range nodes(job) {
		f.known[n.Host] = n.Host != ""
	}
	f.wg.Go(func() {
		tick := time.NewTicker(job.Cluster.DiscoverEvery)
		defer tick.Stop()
		for {
			f.look(ctx)
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	})
	return f
}

// wait returns when it asks no more.
func (f *finder) wait() { f.wg.Wait() }

// look compares the command's answer with what is known. An answer that makes no
// sense changes nothing.
func (f *finder) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, max(f.job.Cluster.DiscoverEvery, 10*time.Second))
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", f.job.Cluster.Discover)
	cmd.WaitDelay = time.Second
	text, err := cmd.Output()
	var found map[string]int
	if err == nil {
		found, err = parseHosts(text)
	}
	if err != nil {
		if ctx.Err() == nil {
			f.note(fmt.Sprintf("cluster.discover: %v: nothing changes", err))
		}
		return
	}
	for host, ranks := range found {
		if !f.known[host] && f.request(ctx, elastic.Request{Add: &elastic.Node{Host: host, Ranks: localRanks(ranks, f.job.Train.Shards)}}) {
			f.known[host] = true
		}
	}
	for host, known := range f.known {
		if _, still := found[host]; known && !still && f.request(ctx, elastic.Request{Drain: host}) {
			f.known[host] = false
		}
	}
}

// request asks for a change and tells whether it was granted.
func (f *finder) request(ctx context.Context, r elastic.Request) bool {
	answer := make(chan error, 1)
	r.Answer = func(_ elastic.Status, err error) { answer <- err }
	select {
	case f.requests <- r:
	case <-ctx.Done():
		return false
	}
	if err := <-answer; err != nil {
		f.note(fmt.Sprintf("cluster.discover: %v", err))
		return false
	}
	return true
}

// parseHosts reads lines of HOST or HOST RANKS; empty ones and what follows a #
// don't count.
func parseHosts(text []byte) (map[string]int, error) {
	found := map[string]int{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line, _, _ := strings.Cut(lines.Text(), "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		ranks := 0
		if len(words) == 2 {
			var err error
			if ranks, err = strconv.Atoi(words[1]); err != nil || ranks < 1 {
				return nil, fmt.Errorf("line %d: %q is no number of ranks", n, words[1])
			}
		}
		if len(words) > 2 || !jobs.ValidHost(words[0]) {
			return nil, fmt.Errorf("line %d: %q is not HOST or HOST RANKS", n, strings.TrimSpace(line))
		}
		found[words[0]] = ranks
	}
	return found, lines.Err()
}
