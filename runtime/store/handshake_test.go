package store

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

func TestWrongSecretIsRefused(t *testing.T) {
	s, dial := serve(t)
	if _, err := Dial(t.Context(), s.Addr().String(), []byte("wrong")); err == nil || !strings.Contains(err.Error(), "secret") {
		t.Errorf("dial with a wrong secret: %v", err)
	}
	if err := dial().Set(t.Context(), "k", nil); err != nil {
		t.Errorf("the server suffered: %v", err)
	}
}

// TestClientRefusesAnImpostor is a server that accepts everybody but cannot prove itself.
func TestClientRefusesAnImpostor(t *testing.T) {
	for name, impostor := range map[string]func(net.Conn){
		"echoes the client's proof": func(c net.Conn) {
			c.Write(append([]byte(magic), make([]byte, nonceSize)...))
			answer := make([]byte, nonceSize+proofSize)
			io.ReadFull(c, answer)
			c.Write(answer[nonceSize:])
		},
		"another secret": func(c net.Conn) {
			c.Write(append([]byte(magic), make([]byte, nonceSize)...))
			answer := make([]byte, nonceSize+proofSize)
			io.ReadFull(c, answer)
			c.Write(proof([]byte("other"), "server", make([]byte, nonceSize), answer[:nonceSize]))
		},
		"another protocol": func(c net.Conn) {
			c.Write([]byte("HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\n\r\n"))
		},
	} {
		client, server := net.Pipe()
		var wg sync.WaitGroup
		wg.Go(func() { impostor(server) })
		if err := introduce(client, secret); !errors.Is(err, errProof) && !errors.Is(err, errMagic) {
			t.Errorf("%s: %v", name, err)
		}
		client.Close()
		wg.Wait()
		server.Close()
	}
}

// TestStrangerReachesNothing sends a request instead of a proof, and replays an old proof.
func TestStrangerReachesNothing(t *testing.T) {
	s, dial := serve(t)
	request, err := request{op: opSet, id: 1, keys: []string{"owned"}, value: bytes.Repeat([]byte("x"), 100)}.encode()
	if err != nil {
		t.Fatal(err)
	}
	replay := append(make([]byte, nonceSize), proof(secret, "client", make([]byte, nonceSize), make([]byte, nonceSize))...)
	for name, words := range map[string][]byte{"request": request, "replay": replay} {
		conn, err := net.Dial("tcp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		conn.Write(words)
		got, _ := io.ReadAll(conn) // the server closes
		if len(got) > len(magic)+nonceSize {
			t.Errorf("%s: the server answered with %d bytes", name, len(got))
		}
		conn.Close()
	}
	keys, err := dial().Keys(t.Context(), "")
	if err != nil || len(keys) != 0 {
		t.Errorf("keys: %q, %v", keys, err)
	}
}

// FuzzHandshake feeds the server's side arbitrary proofs.
func FuzzHandshake(f *testing.F) {
	f.Add(make([]byte, nonceSize+proofSize))
	f.Fuzz(func(t *testing.T, answer []byte) {
		conn := struct {
			io.Reader
			io.Writer
		}{bytes.NewReader(answer), io.Discard}
		if admit(conn, secret) == nil {
			t.Errorf("%x was taken for a proof", answer)
		}
	})
}
