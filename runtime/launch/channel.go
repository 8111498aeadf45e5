package launch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Channel carries messages between an agent and one of its ranks, both ways:
// JSON objects over a Unix socket that keeps their bounds, each with at most one
// descriptor. It ends when the other side's process does. Send and Receive may
// be called concurrently, but Receive by one goroutine at a time.
type Channel struct{ conn *net.UnixConn }

const (
	maxMessage = 64 << 10
	sendLimit  = time.Second // for a message to a process that does not read any more
)

// channelPair makes both ends; the second is a descriptor for a child.
func channelPair() (*Channel, int, error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, -1, fmt.Errorf("make a channel: %w", err)
	}
	c, err := channelOf(ends[0])
	if err != nil {
		unix.Close(ends[1])
		return nil, -1, err
	}
	return c, ends[1], nil
}

// channelOf takes over a descriptor.
func channelOf(fd int) (*Channel, error) {
	file := os.NewFile(uintptr(fd), "channel")
	defer file.Close() // FileConn duplicates
	conn, err := net.FileConn(file)
	if err != nil {
		return nil, fmt.Errorf("open the channel on descriptor %d: %w", fd, err)
	}
	socket, ok := conn.(*net.UnixConn)
	if !ok {
		conn.Close()
		return nil, fmt.Errorf("open the channel: descriptor %d is no Unix socket", fd)
	}
	return &Channel{socket}, nil
}

// Channel takes over the inherited channel to the agent; nil when there is none.
// It can be taken once.
func (r Rank) Channel() (*Channel, error) {
	if r.ChannelFD == 0 {
		return nil, nil
	}
	return channelOf(r.ChannelFD)
}

// Send sends message, and a duplicate of file unless it is nil.
func (c *Channel) Send(message any, file *os.File) error {
	text, err := json.Marshal(message)
	if err != nil {
		return fmt.Errorf("encode message: %w", err)
	}
	if len(text) > maxMessage {
		return fmt.Errorf("send message: %d bytes, at most %d are allowed", len(text), maxMessage)
	}
	var rights []byte
	if file != nil {
		rights = unix.UnixRights(int(file.Fd()))
	}
	if err := c.conn.SetWriteDeadline(time.Now().Add(sendLimit)); err != nil {
		return fmt.Errorf("send message: %w", err)
	}
	if _, _, err := c.conn.WriteMsgUnix(text, rights, nil); err != nil {
		return fmt.Errorf("send message: %w", err)
	}
	return nil
}

// Receive waits for the next message and returns the descriptor that came with
// it, nil for none. io.EOF says that the other side has closed or died.
func (c *Channel) Receive(message any) (*os.File, error) {
	text, rights := make([]byte, maxMessage), make([]byte, unix.CmsgSpace(4))
	n, m, _, _, err := c.conn.ReadMsgUnix(text, rights)
	switch {
	case err == nil && n == 0 && m == 0, errors.Is(err, unix.ECONNRESET):
		return nil, io.EOF
	case err != nil:
		return nil, fmt.Errorf("receive message: %w", err)
	}
	file, err := descriptorIn(rights[:m])
	if err == nil {
		err = json.Unmarshal(text[:n], message)
	}
	if err != nil {
		if file != nil {
			file.Close()
		}
		return nil, fmt.Errorf("receive message: %w", err)
	}
	return file, nil
}

// descriptorIn unpacks what came beside a message.
func descriptorIn(rights []byte) (*os.File, error) {
	if len(rights) == 0 {
		return nil, nil
	}
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil {
		return nil, err
	}
	for _, m := range messages {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			return nil, err
		}
		if len(fds) > 0 {
			return os.NewFile(uintptr(fds[0]), "received"), nil
		}
	}
	return nil, nil
}

// Close ends the channel; a Receive in progress returns.
func (c *Channel) Close() error { return c.conn.Close() }
