package seal

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
)

// pair connects two sides over real sockets.
func pair(t *testing.T, serverSecret, clientSecret []byte) (server, client net.Conn, serverErr, clientErr error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn, err := l.Accept()
		if err != nil {
			serverErr = err
			return
		}
		server, serverErr = Server(context.Background(), conn, serverSecret)
	}()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	client, clientErr = Client(context.Background(), conn, clientSecret)
	<-done
	return
}

func TestSameSecret(t *testing.T) {
	secret := bytes.Repeat([]byte("s"), 32)
	server, client, serverErr, clientErr := pair(t, secret, secret)
	if serverErr != nil || clientErr != nil {
		t.Fatal(serverErr, clientErr)
	}
	defer server.Close()
	defer client.Close()
	go client.Write([]byte("hello"))
	got := make([]byte, 5)
	if _, err := io.ReadFull(server, got); err != nil || string(got) != "hello" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestOtherSecret(t *testing.T) {
	_, _, serverErr, clientErr := pair(t, bytes.Repeat([]byte("s"), 32), bytes.Repeat([]byte("x"), 32))
	if serverErr == nil || clientErr == nil {
		t.Fatalf("server %v, client %v, want both to refuse", serverErr, clientErr)
	}
	if !errors.Is(clientErr, ErrSecret) {
		t.Errorf("client: %v, want ErrSecret", clientErr)
	}
}

func TestShortSecret(t *testing.T) {
	_, _, _, err := pair(t, bytes.Repeat([]byte("s"), 32), []byte("short"))
	if err == nil || !strings.Contains(err.Error(), "at least 16") {
		t.Errorf("error %v", err)
	}
}

// TestStranger speaks no TLS: it learns nothing and holds nothing up.
func TestStranger(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("GET / HTTP/1.1\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Server(context.Background(), accepted, bytes.Repeat([]byte("s"), 32)); err == nil {
		t.Error("a stranger was let in")
	}
}
