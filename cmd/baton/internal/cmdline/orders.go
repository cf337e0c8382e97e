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

// OrderedBy names the user who gives an order, for later readers of the event history.
func OrderedBy(reason string) string {
	return "asked " + operate.Order{By: UserName(), Reason: reason}.Signature()
}

// UserName is the name of the user who gives an order.
func UserName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "somebody"
}

// Confirm asks the person at the terminal. Ctrl-C is no.
func Confirm(ctx context.Context, e Env, question string) error {
	answer, asked, err := Ask(ctx, e, question+" [y/N] ")
	switch {
	case err != nil:
		return err
	case !asked:
		return UsageError(errors.New("add --yes: there is no terminal to ask at"))
	}
	switch strings.ToLower(answer) {
	case "y", "yes":
		return nil
	}
	return WithCode(ExitFailure, errors.New("nothing was changed"))
}

// Ask asks the person at the terminal for a line, and returns it without the space around it. Without
// a terminal asked is false. Ctrl-C is an error.
func Ask(ctx context.Context, e Env, question string) (answer string, asked bool, err error) {
	in, ok := e.Stdin.(*os.File)
	if !ok || !show.IsTerminal(in) {
		return "", false, nil
	}
	if err := show.Say(e.Stderr, "%s", question); err != nil {
		return "", false, err
	}
	read := make(chan struct{})
	go func() { // ends with the process, if there is no answer
		defer close(read)
		answer, err = bufio.NewReader(in).ReadString('\n')
	}()
	select {
	case <-read:
	case <-ctx.Done():
		_ = show.Say(e.Stderr, "\n")
		return "", false, WithCode(ExitFailure, errors.New("nothing was changed"))
	}
	if errors.Is(err, io.EOF) {
		return strings.TrimSpace(answer), answer != "", nil // without an answer it is one such as /dev/null
	}
	return strings.TrimSpace(answer), true, err
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
