package launch

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ddp/runtime/store"
)

// TestPortIsKeptForTheCommand holds a port that a child then listens on itself,
// as torch's rank 0 does.
func TestPortIsKeptForTheCommand(t *testing.T) {
	held, port, err := StoreSocket(false, false, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	p := startHelper(t, fmt.Sprintf("listen:0.0.0.0:%d", port), func(c *Command) { c.Inherit = map[int]*os.File{StoreFD: held} })
	if got := p.line(t); got != "listening" {
		t.Fatal(got)
	}
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if line, err := bufio.NewReader(conn).ReadString('\n'); line != "hello\n" {
		t.Errorf("%q, %v", line, err)
	}
}

// TestInheritedSocketServes connects before anybody serves.
func TestInheritedSocketServes(t *testing.T) {
	for _, listens := range []bool{true, false} {
		file, port, err := StoreSocket(true, listens, 0)
		if err != nil {
			t.Fatal(err)
		}
		secret := []byte("s")
		client := make(chan error, 1)
		go func() {
			c, err := store.Dial(t.Context(), fmt.Sprintf("127.0.0.1:%d", port), secret)
			if err == nil {
				c.Close()
			}
			client <- err
		}()
		inherited, err := unix.Dup(int(file.Fd())) // listener owns and closes it
		if err != nil {
			t.Fatal(err)
		}
		file.Close()
		l, err := Rank{StoreFD: inherited}.listener()
		if err != nil {
			t.Fatal(err)
		}
		s := store.Serve(l, secret)
		if err := <-client; err != nil {
			t.Errorf("listening already %v: %v", listens, err)
		}
		s.Close()
	}
}

func TestRendezvousEndsWithItsContext(t *testing.T) {
	file, port, err := StoreSocket(true, false, 0) // bound, and nobody listens
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := (Rank{MasterAddr: "127.0.0.1", MasterPort: port}).dial(ctx, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("dial: %v", err)
	}
}
