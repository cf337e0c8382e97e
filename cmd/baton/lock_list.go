package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"baton/internal/lockcmd"
	"baton/internal/text"
)

// inspect is --list and --break.
func (f *lockFlags) inspect(cmd *cobra.Command, e env) error {
	c, err := loadConfig(cmd, e)
	if err != nil {
		return err
	}
	if f.list {
		held, err := lockcmd.List(cmd.Context(), c)
		if err != nil {
			return err
		}
		return f.out.print(e.stdout, held, func(w io.Writer) error { return printLocks(w, held, time.Now()) })
	}
	broken, err := lockcmd.Break(cmd.Context(), c, f.breakUp, breaker(f.reason))
	switch {
	case errors.Is(err, lockcmd.ErrNotHeld):
		return &exitError{exitNoLeader, err}
	case errors.Is(err, lockcmd.ErrUsage):
		return usageError(err)
	case err != nil:
		return err
	}
	return f.out.print(e.stdout, broken, func(w io.Writer) error {
		from := broken.NodeID
		if from == "" {
			from = fmt.Sprintf("a program that is not baton (owner %s)", broken.Owner)
		}
		return say(w, "%s: taken away from %s; free in %s\n", broken.Name, from, text.Duration(time.Duration(broken.FreeInMS)*time.Millisecond))
	})
}

// breaker says who breaks a lock and why, for those who read the event history later.
func breaker(reason string) string {
	by := orderedBy(reason)
	if host, err := os.Hostname(); err == nil {
		by += " (on " + host + ")"
	}
	return by
}

func printLocks(out io.Writer, held []lockcmd.State, now time.Time) error {
	if len(held) == 0 {
		return say(out, "no locks are held\n")
	}
	w := newTable(out)
	p := func(format string, args ...any) { _ = say(w, format, args...) } // Flush tells a write error
	p("LOCK\tNODE\tEPOCH\tFOR\tLEASE LEFT\tOWNER\n")
	for _, l := range held {
		node, epoch, since, left := l.NodeID, fmt.Sprint(l.Epoch), text.Duration(now.Sub(l.Since)), "no expiry"
		if l.Foreign {
			node, epoch, since = "(not baton)", "-", "-"
		}
		if l.LeaseLeftMS >= 0 {
			left = text.Duration(time.Duration(l.LeaseLeftMS) * time.Millisecond)
		}
		p("%s\t%s\t%s\t%s\t%s\t%s\n", l.Name, node, epoch, since, left, l.Owner)
	}
	return w.Flush()
}
