// Package observe holds what a run tells: events as JSON lines, for scripts and
// between processes, and the same events drawn for a person.
package observe
