package launch

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// fileTable makes the descriptors of a child.
type fileTable struct {
	child   []uintptr  // by the child's number
	given   []*os.File // the child's ends, to be closed once it has them
	outputs []*os.File // our ends of Command.Outputs
	control *os.File   // our end of its stdin
	channel *Channel   // our end of its channel
}

// closedFD is a descriptor that the child does not get.
const closedFD = ^uintptr(0)

func newFileTable() *fileTable {
	return &fileTable{child: []uintptr{closedFD, closedFD, closedFD}}
}

// build fills the table. After an error closeEnds must be called.
func (t *fileTable) build(c Command) error {
	for fd, file := range c.Inherit {
		t.put(fd, file.Fd())
	}
	for fd, text := range c.Secrets {
		if err := t.filledPipe(fd, text); err != nil {
			return fmt.Errorf("make pipe: %w", err)
		}
	}
	for _, out := range c.Outputs {
		read, write, err := pipe()
		if err != nil {
			return fmt.Errorf("make pipe: %w", err)
		}
		t.give(out.FD, write)
		t.outputs = append(t.outputs, pollable(read))
	}
	if c.Control {
		read, write, err := pipe()
		if err != nil {
			return fmt.Errorf("make pipe: %w", err)
		}
		t.give(0, read)
		t.control = pollable(write)
	}
	if c.Channel {
		ours, theirs, err := channelPair()
		if err != nil {
			return err
		}
		t.channel = ours
		t.give(ChannelFD, theirs)
	}
	return t.fillStandard()
}

func (t *fileTable) put(fd int, value uintptr) {
	for len(t.child) <= fd {
		t.child = append(t.child, closedFD)
	}
	t.child[fd] = value
}

// give makes our descriptor ours the child's descriptor fd.
func (t *fileTable) give(fd, ours int) {
	t.given = append(t.given, os.NewFile(uintptr(ours), "pipe"))
	t.put(fd, uintptr(ours))
}

// filledPipe gives the child a pipe that holds text and ends after it.
func (t *fileTable) filledPipe(fd int, text []byte) error {
	read, write, err := pipe()
	if err != nil {
		return err
	}
	t.give(fd, read)
	end := pollable(write)
	defer end.Close()
	if len(text) > os.Getpagesize() {
		return fmt.Errorf("%d bytes are more than a page", len(text))
	}
	_, err = end.Write(text)
	return err
}

// fillStandard gives the child /dev/null where it has nothing else.
func (t *fileTable) fillStandard() error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	t.given = append(t.given, null)
	for fd := range 3 {
		if t.child[fd] == closedFD {
			t.child[fd] = null.Fd()
		}
	}
	return nil
}

// close closes what is the child's alone.
func (t *fileTable) close() {
	for _, f := range t.given {
		f.Close()
	}
}

// closeEnds closes our ends: there is no child.
func (t *fileTable) closeEnds() {
	for _, f := range t.outputs {
		f.Close()
	}
	if t.control != nil {
		t.control.Close()
	}
	if t.channel != nil {
		t.channel.Close()
	}
}

// pipe makes one whose ends block, as programs expect of what they inherit.
func pipe() (read, write int, err error) {
	var ends [2]int
	err = unix.Pipe2(ends[:], unix.O_CLOEXEC)
	return ends[0], ends[1], err
}

// pollable makes our end of a pipe one whose Close ends a Read or Write in progress.
func pollable(fd int) *os.File {
	_ = unix.SetNonblock(fd, true) // fails only for what is no descriptor
	return os.NewFile(uintptr(fd), "pipe")
}
