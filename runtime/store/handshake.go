package store

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
)

// The handshake is a mutual challenge and response over HMAC-SHA256 (RFC 2104).
//
//	server -> client  magic, nonce S
//	client -> server  nonce C, HMAC(secret, "client", S, C)
//	server -> client  HMAC(secret, "server", S, C)
//
// All parts have fixed lengths, so neither side reads a length from a stranger.
// The two labels keep a proof from being played back to its maker.
const (
	magic     = "ddpstor1"
	nonceSize = 32
	proofSize = sha256.Size
)

var (
	errProof = errors.New("the peer does not know the job's secret")
	errMagic = errors.New("the peer is not a store of this version")
)

func proof(secret []byte, label string, s, c []byte) []byte {
	h := hmac.New(sha256.New, secret)
	h.Write([]byte(magic + label))
	h.Write(s)
	h.Write(c)
	return h.Sum(nil)
}

// admit is the server's side: it returns nil when the client proved itself.
func admit(conn io.ReadWriter, secret []byte) error {
	hello := make([]byte, len(magic)+nonceSize)
	copy(hello, magic)
	s := hello[len(magic):]
	rand.Read(s)
	if _, err := conn.Write(hello); err != nil {
		return fmt.Errorf("send challenge: %w", err)
	}
	answer := make([]byte, nonceSize+proofSize)
	if _, err := io.ReadFull(conn, answer); err != nil {
		return fmt.Errorf("read proof: %w", err)
	}
	c := answer[:nonceSize]
	if !hmac.Equal(answer[nonceSize:], proof(secret, "client", s, c)) {
		return errProof
	}
	if _, err := conn.Write(proof(secret, "server", s, c)); err != nil {
		return fmt.Errorf("send proof: %w", err)
	}
	return nil
}

// introduce is the client's side: it returns nil when both proved themselves.
func introduce(conn io.ReadWriter, secret []byte) error {
	hello := make([]byte, len(magic)+nonceSize)
	if _, err := io.ReadFull(conn, hello); err != nil {
		return fmt.Errorf("read challenge: %w", err)
	}
	if string(hello[:len(magic)]) != magic {
		return errMagic
	}
	s, c := hello[len(magic):], make([]byte, nonceSize)
	rand.Read(c)
	answer := append(append([]byte(nil), c...), proof(secret, "client", s, c)...)
	if _, err := conn.Write(answer); err != nil {
		return fmt.Errorf("send proof: %w", err)
	}
	got := make([]byte, proofSize)
	if _, err := io.ReadFull(conn, got); err != nil {
		return fmt.Errorf("the server refused our proof, does it have another secret? %w", err)
	}
	if !hmac.Equal(got, proof(secret, "server", s, c)) {
		return errProof
	}
	return nil
}
