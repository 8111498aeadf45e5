// Package store is the key-value store through which the ranks of a job find
// each other: rank 0 serves it over TCP, everybody dials it. Beside set and get
// it has the verbs of a rendezvous: waits, atomic addition, compare-and-set,
// watches.
//
// # Protocol
//
// Before anything else is read, both sides prove that they know the job's
// secret (handshake.go). Then the client sends requests and the server answers,
// in frames of a four-byte big-endian length and a body of at most MaxFrame
// bytes (frame.go). A request carries a number that its answer repeats, so that
// one connection serves many requests at once and a waiting one holds up no
// other. There is no ordering between requests that are in flight together.
//
// The store lives as long as one generation of the job; nothing is persistent.
package store
