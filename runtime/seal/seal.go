// Package seal makes a connection private to those who know a secret: TLS 1.3
// (RFC 8446) in which both sides show a certificate for the one Ed25519 key that
// follows from the secret (HKDF, RFC 5869). Whoever holds that key knows the
// secret; nobody else can read, change or play back what is said.
package seal

import (
	"context"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"
)

// MinSecret is the least number of bytes of a secret.
const MinSecret = 16

// handshakeTime bounds what a stranger can hold up.
const handshakeTime = 10 * time.Second

// ErrSecret says that the other side does not know the secret.
var ErrSecret = errors.New("the other side does not know the job's secret")

// Server seals the accepting side of conn, Client the dialling one. They own
// conn: after an error it is closed.
func Server(ctx context.Context, conn net.Conn, secret []byte) (net.Conn, error) {
	return shake(ctx, conn, secret, tls.Server)
}

// Client seals the dialling side of conn.
func Client(ctx context.Context, conn net.Conn, secret []byte) (net.Conn, error) {
	return shake(ctx, conn, secret, tls.Client)
}

func shake(ctx context.Context, conn net.Conn, secret []byte, side func(net.Conn, *tls.Config) *tls.Conn) (net.Conn, error) {
	config, err := config(secret)
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("seal the connection: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, handshakeTime)
	defer cancel()
	sealed := side(conn, config)
	err = sealed.HandshakeContext(ctx)
	if err == nil {
		err = agree(ctx, sealed)
	}
	if err != nil {
		sealed.Close()
		return nil, fmt.Errorf("seal the connection with %v: %w", conn.RemoteAddr(), err)
	}
	return sealed, nil
}

// agree exchanges a byte: in TLS 1.3 a client is done before the server has
// looked at its certificate.
func agree(ctx context.Context, conn *tls.Conn) error {
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return err
	}
	if _, err := conn.Write([]byte{1}); err != nil {
		return refused(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err != nil {
		return refused(err)
	}
	return conn.SetDeadline(time.Time{})
}

// refused puts an alert of the other side in words.
func refused(err error) error {
	var alert *net.OpError
	if errors.As(err, &alert) && alert.Op == "remote error" {
		return fmt.Errorf("%w (%w)", ErrSecret, err)
	}
	return err
}

// config lets only holders of the secret's key in.
func config(secret []byte) (*tls.Config, error) {
	if len(secret) < MinSecret {
		return nil, fmt.Errorf("the secret has %d bytes, want at least %d", len(secret), MinSecret)
	}
	seed, err := hkdf.Key(sha256.New, secret, nil, "ddp seal", ed25519.SeedSize)
	if err != nil {
		return nil, err
	}
	key := ed25519.NewKeyFromSeed(seed)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().AddDate(100, 0, 0)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:         tls.VersionTLS13,
		Certificates:       []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		ClientAuth:         tls.RequireAnyClientCert,
		InsecureSkipVerify: true, // names and authorities mean nothing here: the key does
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) == 0 {
				return ErrSecret
			}
			if theirs, ok := s.PeerCertificates[0].PublicKey.(ed25519.PublicKey); !ok || !theirs.Equal(key.Public()) {
				return ErrSecret
			}
			return nil
		},
		SessionTicketsDisabled: true,
	}, nil
}
