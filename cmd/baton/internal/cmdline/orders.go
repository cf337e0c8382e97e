package cmdline

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/user"
	"strings"

	"baton/cmd/baton/internal/show"
	"baton/internal/operate"
)

// OrderedBy says who asks, for those who read the event history later.
func OrderedBy(reason string) string {
	return "asked " + operate.Order{By: UserName(), Reason: reason}.Signature()
}

// UserName is who gives an order.
func UserName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "somebody"
}

// Confirm asks the person at the terminal. Ctrl-C is no.
func Confirm(ctx context.Context, e Env, question string) error {
	noTerminal := UsageError(errors.New("add --yes: there is no terminal to ask at"))
	in, ok := e.Stdin.(*os.File)
	if !ok || !show.IsTerminal(in) {
		return noTerminal
	}
	if err := show.Say(e.Stderr, "%s [y/N] ", question); err != nil {
		return err
	}
	var answer string
	var err error
	read := make(chan struct{})
	go func() { // ends with the process, if there is no answer
		defer close(read)
		answer, err = bufio.NewReader(in).ReadString('\n')
	}()
	select {
	case <-read:
	case <-ctx.Done():
		_ = show.Say(e.Stderr, "\n")
		return WithCode(ExitFailure, errors.New("nothing was changed"))
	}
	switch {
	case errors.Is(err, io.EOF) && answer == "": // such as /dev/null
		return noTerminal
	case err != nil && !errors.Is(err, io.EOF):
		return err
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return WithCode(ExitFailure, errors.New("nothing was changed"))
}

// JobError gives an error about jobs its exit code.
func JobError(err error) error {
	if errors.Is(err, operate.ErrNoJob) {
		return UsageError(err)
	}
	return err
}

// idShown is how much of an id is printed. It is more than enough to be the only one.
const idShown = 12

// ShortID is as much of an id as is printed.
func ShortID(id string) string { return id[:min(idShown, len(id))] }
