// Command ddp trains GPT models data-parallel on one machine or many and keeps
// training when processes, devices or nodes fail. The same binary is launcher,
// agent and rank: see ARCHITECTURE.md.
package main

import (
	"os"

	"ddp/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
