package spmd

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
)

// The handshake of a TCP connection. All messages have fixed sizes:
//
//	dialer    greeting, nonce
//	listener  nonce, proof
//	dialer    claim, proof
//	listener  verdict
//
// A proof is the HMAC-SHA256, under the job's secret, of the side's name, both
// nonces and the claim. The listener proves itself first, so a dialer tells a
// stranger nothing; it reads the claim only as far as its proof covers it.

const (
	greeting    = "spmd/1\r\n"
	nonceSize   = 32
	proofSize   = sha256.Size
	claimSize   = 32
	tokenLength = 32 // hexadecimal characters
)

// claim says which connection this is to become.
type claim struct {
	generation uint64
	token      string // of the listener that is meant
	from       uint32
	lane       uint32
}

func newToken() string {
	b := make([]byte, tokenLength/2)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

func (c claim) marshal() ([]byte, error) {
	token, err := hex.DecodeString(c.token)
	if err != nil || len(token) != tokenLength/2 {
		return nil, errors.New("the peer's token is malformed")
	}
	b := make([]byte, 0, claimSize)
	b = binary.LittleEndian.AppendUint64(b, c.generation)
	b = append(b, token...)
	b = binary.LittleEndian.AppendUint32(b, c.from)
	return binary.LittleEndian.AppendUint32(b, c.lane), nil
}

func parseClaim(b [claimSize]byte) claim {
	return claim{
		generation: binary.LittleEndian.Uint64(b[:]),
		token:      hex.EncodeToString(b[8:24]),
		from:       binary.LittleEndian.Uint32(b[24:]),
		lane:       binary.LittleEndian.Uint32(b[28:]),
	}
}

// The listener's verdicts.
const (
	verdictWelcome byte = iota
	verdictGeneration
	verdictToken
	verdictRank
)

var (
	errStranger   = errors.New("the peer does not know this job's secret")
	errGeneration = errors.New("the peer belongs to another generation")
	errToken      = errors.New("another process of this job answered")
	errUnexpected = errors.New("the peer did not expect this connection")
)

func verdictError(v byte) error {
	switch v {
	case verdictWelcome:
		return nil
	case verdictGeneration:
		return errGeneration
	case verdictToken:
		return errToken
	}
	return errUnexpected
}

func prove(secret []byte, side string, parts ...[]byte) []byte {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(side))
	for _, p := range parts {
		mac.Write(p)
	}
	return mac.Sum(nil)
}

func newNonce() []byte {
	b := make([]byte, nonceSize)
	_, _ = rand.Read(b) // never fails
	return b
}

// greet is the dialer's side.
func greet(conn io.ReadWriter, secret []byte, c claim) error {
	text, err := c.marshal()
	if err != nil {
		return err
	}
	mine := newNonce()
	if _, err := conn.Write(append([]byte(greeting), mine...)); err != nil {
		return fmt.Errorf("greet: %w", err)
	}
	var answer [nonceSize + proofSize]byte
	if _, err := io.ReadFull(conn, answer[:]); err != nil {
		return fmt.Errorf("read the peer's proof: %w", err)
	}
	theirs, proof := answer[:nonceSize], answer[nonceSize:]
	if !hmac.Equal(proof, prove(secret, "listener", mine, theirs)) {
		return errStranger
	}
	if _, err := conn.Write(append(text, prove(secret, "dialer", mine, theirs, text)...)); err != nil {
		return fmt.Errorf("claim: %w", err)
	}
	var verdict [1]byte
	if _, err := io.ReadFull(conn, verdict[:]); err != nil {
		return fmt.Errorf("read the peer's verdict: %w", err)
	}
	return verdictError(verdict[0])
}

// admit is the listener's side. judge decides on a proven claim.
func admit(conn io.ReadWriter, secret []byte, judge func(claim) byte) (claim, error) {
	var hello [len(greeting) + nonceSize]byte
	if _, err := io.ReadFull(conn, hello[:]); err != nil {
		return claim{}, fmt.Errorf("read a greeting: %w", err)
	}
	if string(hello[:len(greeting)]) != greeting {
		return claim{}, errStranger
	}
	theirs, mine := hello[len(greeting):], newNonce()
	if _, err := conn.Write(append(mine, prove(secret, "listener", theirs, mine)...)); err != nil {
		return claim{}, fmt.Errorf("prove: %w", err)
	}
	var text [claimSize]byte
	var proof [proofSize]byte
	if _, err := io.ReadFull(conn, text[:]); err != nil {
		return claim{}, fmt.Errorf("read a claim: %w", err)
	}
	if _, err := io.ReadFull(conn, proof[:]); err != nil {
		return claim{}, fmt.Errorf("read a proof: %w", err)
	}
	if !hmac.Equal(proof[:], prove(secret, "dialer", theirs, mine, text[:])) {
		return claim{}, errStranger
	}
	c := parseClaim(text)
	verdict := judge(c)
	if _, err := conn.Write([]byte{verdict}); err != nil {
		return claim{}, fmt.Errorf("answer: %w", err)
	}
	return c, verdictError(verdict)
}
