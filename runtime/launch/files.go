package launch

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// fileTable makes the descriptors of a child.
type fileTable struct {
	child []uintptr  // by the child's number
	ours  []*os.File // to be closed once the child has them
}

// closedFD is a descriptor that the child does not get.
const closedFD = ^uintptr(0)

func newFileTable() *fileTable {
	return &fileTable{child: []uintptr{closedFD, closedFD, closedFD}}
}

// build fills the table and returns our ends of the outputs.
func (t *fileTable) build(c Command) (pipes []*os.File, err error) {
	for fd, file := range c.Inherit {
		t.put(fd, file.Fd())
	}
	for _, out := range c.Outputs {
		read, err := t.output(out.FD)
		if err != nil {
			for _, p := range pipes {
				p.Close()
			}
			return nil, fmt.Errorf("make pipe: %w", err)
		}
		pipes = append(pipes, read)
	}
	return pipes, t.fillStandard()
}

func (t *fileTable) put(fd int, value uintptr) {
	for len(t.child) <= fd {
		t.child = append(t.child, closedFD)
	}
	t.child[fd] = value
}

// output makes a pipe that blocks the child but not us.
func (t *fileTable) output(fd int) (*os.File, error) {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return nil, err
	}
	write := os.NewFile(uintptr(ends[1]), "pipe")
	t.ours = append(t.ours, write)
	t.put(fd, uintptr(ends[1]))
	if err := unix.SetNonblock(ends[0], true); err != nil {
		unix.Close(ends[0])
		return nil, err
	}
	return os.NewFile(uintptr(ends[0]), "pipe"), nil
}

// fillStandard gives the child /dev/null where it has nothing else.
func (t *fileTable) fillStandard() error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	t.ours = append(t.ours, null)
	for fd := range 3 {
		if t.child[fd] == closedFD {
			t.child[fd] = null.Fd()
		}
	}
	return nil
}

func (t *fileTable) close() {
	for _, f := range t.ours {
		f.Close()
	}
}
