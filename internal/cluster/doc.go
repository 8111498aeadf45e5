// Package cluster makes hosts for tests: real ssh servers, on loopback or each
// in namespaces of its own with a network between them that can be hurt.
package cluster
