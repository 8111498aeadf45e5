package launch

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// StoreSocket binds a TCP socket for rank 0's store to a port, 0 for a free one,
// which stays taken while the file is open. With local only this machine can reach it. With
// listen clients may connect already; without, a program that sets SO_REUSEADDR,
// as torch's store and Go's net.Listen do, can listen on the port itself.
func StoreSocket(local, listen bool, wanted int) (file *os.File, port int, err error) {
	fd, err := boundSocket(local, wanted)
	if err != nil {
		return nil, 0, fmt.Errorf("bind the store's socket to port %d: %w", wanted, err)
	}
	file = os.NewFile(uintptr(fd), "store")
	defer func() {
		if err != nil {
			file.Close()
		}
	}()
	if listen {
		if err := unix.Listen(fd, unix.SOMAXCONN); err != nil {
			return nil, 0, fmt.Errorf("listen on the store's socket: %w", err)
		}
	}
	addr, err := unix.Getsockname(fd)
	if err != nil {
		return nil, 0, fmt.Errorf("find the store's port: %w", err)
	}
	switch a := addr.(type) {
	case *unix.SockaddrInet4:
		port = a.Port
	case *unix.SockaddrInet6:
		port = a.Port
	}
	return file, port, nil
}

// boundSocket binds to 127.0.0.1, or to all addresses: IPv6 and IPv4 where there is IPv6.
func boundSocket(local bool, port int) (int, error) {
	if !local {
		if fd, err := bindTo(unix.AF_INET6, &unix.SockaddrInet6{Port: port}); err == nil {
			return fd, nil
		}
		return bindTo(unix.AF_INET, &unix.SockaddrInet4{Port: port})
	}
	return bindTo(unix.AF_INET, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
}

func bindTo(family int, addr unix.Sockaddr) (int, error) {
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	if err == nil && family == unix.AF_INET6 {
		err = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0)
	}
	if err == nil {
		err = unix.Bind(fd, addr)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}
