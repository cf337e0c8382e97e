package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"baton/internal/command/orphans"
	"baton/internal/notify/service"
)

const (
	// outputKept is the maximum number of bytes of a command's output that an error quotes.
	outputKept = 512
	// closeWithin is how long a background process of the command may keep the output open.
	closeWithin = time.Second
)

// Command runs a program for each event, with the event as JSON on the program's standard input. The event is delivered if the program ends
// with exit code 0.
//
// Unlike a job's command, a notification command has no warden. A job's command must be dead before the lease can have ended, because the
// next leader may start the same command. A notification command changes no data that the lease protects. So it may run after the lock was
// released, which happens when it reports the last run of a term. If this process is killed, the command ends by itself.
type Command struct {
	argv   []string
	env    []string
	filter func() Filter
}

// Filter passes on the part of a command's output that may be reported. The argument last is true if the text is the end of the output.
type Filter func(text []byte, last bool, out func([]byte))

// NewCommand returns a target that runs argv with the environment env.
func NewCommand(argv, env []string) *Command { return &Command{argv: argv, env: env} }

// Filter makes the target filter the command's output before it is reported. The function make returns a new filter for each event.
func (c *Command) Filter(make func() Filter) *Command {
	c.filter = make
	return c
}

// Send implements [Target]. When ctx ends, it kills the program and the program's whole process group.
func (c *Command) Send(ctx context.Context, e Event) error {
	text, err := json.Marshal(e)
	if err != nil {
		return service.Refused("encode the event: %v", err)
	}
	output := filtered{to: &tail{most: outputKept}}
	if c.filter != nil {
		output.through = c.filter()
	}
	cmd := exec.CommandContext(ctx, c.argv[0], c.argv[1:]...)
	cmd.Env = c.env
	cmd.Stdin = bytes.NewReader(append(text, '\n'))
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.WaitDelay = closeWithin
	ownGroup(cmd)
	err = orphans.Run(cmd)
	switch {
	case err == nil, errors.Is(err, exec.ErrWaitDelay): // the command has succeeded, and has left a process running
		return nil
	case ctx.Err() != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		err = errors.New("it did not end in time and was killed")
	case ctx.Err() != nil:
		err = errors.New("it was killed before it had ended")
	}
	if said := output.String(); said != "" {
		return fmt.Errorf("the command failed: %w: %s", err, said)
	}
	return fmt.Errorf("the command failed: %w", err)
}
