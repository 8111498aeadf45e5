package spmd

import (
	"encoding/json"
	"errors"
	"fmt"
)

// card is what a rank tells its peers so that they can reach it.
type card struct {
	Host      string   `json:"host"` // Config.HostID
	PID       int      `json:"pid,omitempty"`
	FD        int      `json:"fd,omitempty"` // the segment's, in that process
	Nonce     string   `json:"nonce,omitempty"`
	Addresses []string `json:"addresses,omitempty"`
	Token     string   `json:"token,omitempty"` // the listener's, so that nobody mistakes one for another
	Error     string   `json:"error,omitempty"` // why this rank cannot take part
}

func parseCard(text []byte) (card, error) {
	var c card
	if err := json.Unmarshal(text, &c); err != nil {
		return c, fmt.Errorf("a card is not JSON: %w", err)
	}
	switch {
	case c.Error != "":
		return c, errors.New(c.Error)
	case c.Nonce != "" && (c.PID <= 0 || c.FD < 0):
		return c, fmt.Errorf("a card names file %d of process %d", c.FD, c.PID)
	case len(c.Addresses) > 0 && len(c.Token) != tokenLength:
		return c, fmt.Errorf("a card's token has %d characters", len(c.Token))
	}
	return c, nil
}

// locate returns a rank's place among those of its host.
func locate(cards []card, rank int) (localRank, localSize int) {
	for r, c := range cards {
		if c.Host != cards[rank].Host {
			continue
		}
		if r < rank {
			localRank++
		}
		localSize++
	}
	return localRank, localSize
}
