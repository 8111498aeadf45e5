// Package ssh reaches other hosts through the system's ssh, with all that the
// user's configuration says of them. It runs this very program there: the host
// looks for it by its hash, and gets a copy when it has none.
package ssh
