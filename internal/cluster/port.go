package cluster

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// macPrefix begins every host's Ethernet address: locally administered.
	macPrefix = 0x02
	// maxFrame is the largest Ethernet frame, of MTU 9000 with its head.
	maxFrame = 9018
)

// port is our end of a host's network device (a TAP).
type port struct {
	number int
	name   string // of the device, in the namespace where it was made
	file   *os.File
}

// openPort makes a network device in this process's namespace.
func openPort(number int) (*port, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open /dev/net/tun: %w", err)
	}
	request, err := unix.NewIfreq("ddptap%d") // the kernel puts a free number in
	if err == nil {
		request.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	}
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("make a network device: %w", err)
	}
	return &port{number, request.Name(), os.NewFile(uintptr(fd), "tap")}, nil
}

// read passes frames on until the port is closed or its namespace is gone.
func (p *port) read(pass func([]byte)) {
	buffer := make([]byte, maxFrame)
	for {
		n, err := p.file.Read(buffer)
		switch {
		case errors.Is(err, syscall.EIO): // the device is down yet
			continue
		case err != nil:
			return
		case n >= 14:
			pass(buffer[:n])
		}
	}
}

// put gives the host a frame; a device that is gone or down takes none.
func (p *port) put(frame []byte) { _, _ = p.file.Write(frame) }
