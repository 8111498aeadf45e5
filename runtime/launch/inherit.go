package launch

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// Numbers of the descriptors that a rank inherits.
const (
	EventsFD  = 3 // pipe: the rank writes its events
	SecretFD  = 4 // pipe: the rank reads the generation's secret
	PayloadFD = 5 // file without a name: what the launcher passes to its ranks
	StoreFD   = 6 // rank 0: bound TCP socket of the store
	ChannelFD = 7 // Unix socket to the agent: see Channel
	FlightFD  = 8 // file without a name: the rank's flight recorder
)

// keepDescriptors keeps the inherited descriptors from processes that this one
// starts: a child that held the events pipe would hide this process's end.
func (r Rank) keepDescriptors() {
	for _, fd := range []int{r.EventsFD, r.SecretFD, r.PayloadFD, r.StoreFD, r.ChannelFD, r.FlightFD} {
		if fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
}

// Payload returns what the launcher passes to all ranks; nil when it passes nothing.
// It may be called again.
func (r Rank) Payload() ([]byte, error) {
	if r.PayloadFD == 0 {
		return nil, nil
	}
	// Read by position, and don't close: the descriptor stays for the next call.
	var (
		payload []byte
		chunk   = make([]byte, 64<<10)
	)
	for {
		n, err := unix.Pread(r.PayloadFD, chunk, int64(len(payload)))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read payload from descriptor %d: %w", r.PayloadFD, err)
		}
		if n == 0 {
			return payload, nil
		}
		payload = append(payload, chunk[:n]...)
	}
}

// Events is where the rank writes its events, a whole JSON object and a newline
// each. Each Write arrives undivided if it is one line. io.Discard when nobody listens.
func (r Rank) Events() io.Writer {
	if r.EventsFD == 0 {
		return io.Discard
	}
	return eventsPipe(r.EventsFD)
}

// eventsPipe is one file however often Events is called, so that none is
// finalised, and thereby closed, under another.
var eventsPipe = func() func(fd int) io.Writer {
	var (
		mu    sync.Mutex
		files = map[int]*os.File{}
	)
	return func(fd int) io.Writer {
		mu.Lock()
		defer mu.Unlock()
		if files[fd] == nil {
			files[fd] = os.NewFile(uintptr(fd), "events")
		}
		return files[fd]
	}
}()

// secret reads the generation's secret to its end. It can be read once.
func (r Rank) secret() ([]byte, error) {
	if r.given != nil {
		return r.given.secret, nil
	}
	if r.SecretFD == 0 {
		return nil, errors.New("no secret was passed on: start ranks with `ddp launch`")
	}
	pipe := os.NewFile(uintptr(r.SecretFD), "secret")
	defer pipe.Close()
	secret, err := io.ReadAll(io.LimitReader(pipe, 1<<10))
	if err != nil {
		return nil, fmt.Errorf("read secret from descriptor %d: %w", r.SecretFD, err)
	}
	if len(secret) == 0 {
		return nil, errors.New("read secret: it was read before or its launcher died")
	}
	return secret, nil
}

// listener takes over the store's socket.
func (r Rank) listener() (net.Listener, error) {
	file, err := r.socket()
	if err != nil {
		return nil, err
	}
	defer file.Close() // FileListener duplicates
	// The agent may have bound the socket only, to leave the port to programs
	// that open it themselves.
	if err := unix.Listen(int(file.Fd()), unix.SOMAXCONN); err != nil {
		return nil, fmt.Errorf("listen on the inherited socket: %w", err)
	}
	l, err := net.FileListener(file)
	if err != nil {
		return nil, fmt.Errorf("take over the inherited socket: %w", err)
	}
	return l, nil
}

// socket is the store's, bound by the agent.
func (r Rank) socket() (*os.File, error) {
	switch {
	case r.given != nil && r.given.store != nil:
		return r.given.store, nil
	case r.StoreFD != 0:
		return os.NewFile(uintptr(r.StoreFD), "store"), nil
	}
	return nil, errors.New("no socket for the store was passed on: start ranks with `ddp launch`")
}
