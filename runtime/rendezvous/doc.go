// Package rendezvous brings the nodes of a job together that are started one by
// one, each by a command of its own, and that know nothing of each other but one
// address: which of them leads (lead.go), and with which of them the job begins
// (gather.go).
package rendezvous
