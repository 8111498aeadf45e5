package ssh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"ddp/runtime/launch"
)

// Copy gives host, whose `uname -sm` says system, a copy of p. It is complete or
// not there at all.
func (p Program) Copy(ctx context.Context, host, system string) error {
	if system != p.system {
		return fmt.Errorf("it is %s, but this program runs on %s (hint: all hosts of a job need the same kind of system: others would round differently)", system, p.system)
	}
	program, err := os.Open(p.file)
	if err != nil {
		return fmt.Errorf("copy the program: %w", err)
	}
	defer program.Close()
	c, err := p.copyCommand(host)
	if err != nil {
		return err
	}
	said := &lastLines{}
	c.Control = true
	c.Outputs = []launch.Output{{FD: 2, MaxLine: 4 << 10, Emit: func(line []byte, _ bool) { said.add(string(line)) }}}
	proc, err := launch.Start(c)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, proc.Kill)
	defer stop()
	_, err = io.Copy(proc.Control, program)
	err = errors.Join(err, proc.Control.Close())
	<-proc.Ended()
	<-proc.Drained()
	switch exit := proc.Exit(); {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case exit != launch.Exit{}:
		return fmt.Errorf("copy the program to ~/.cache/ddp: %s", Explain(host, exit, said.list()))
	case err != nil:
		return fmt.Errorf("copy the program: %w", err)
	}
	return nil
}
