package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"
)

// newDocsCommand is for those who build packages and write the documentation.
func newDocsCommand(e env) *cobra.Command {
	return parent(&cobra.Command{
		Use:    "docs",
		Short:  "Write the manual pages, or the reference of the commands",
		Hidden: true,
	}, &cobra.Command{
		Use:     "man DIR",
		Short:   "Write the manual pages into a directory",
		Long:    "Write the manual pages into a directory. Their date is $SOURCE_DATE_EPOCH, if that is set, else today.",
		Example: "  baton docs man /usr/local/share/man",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			day, err := builtOn(e)
			if err != nil {
				return usageError(err)
			}
			return writeAll(args[0], manPages(cmd.Root(), day))
		},
	}, &cobra.Command{
		Use:     "markdown DIR",
		Short:   "Write the reference of the commands and of the exit codes into a directory",
		Example: "  baton docs markdown docs/reference",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return writeAll(args[0], markdownPages(cmd.Root()))
		},
	})
}

// builtOn is the day that pages are dated by: the same source has to make the same
// pages whenever it is built.
func builtOn(e env) (time.Time, error) {
	text, _ := e.getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		return time.Now(), nil
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH is %q: want seconds since 1970", text)
	}
	return time.Unix(seconds, 0), nil
}

// writeAll writes files by their names. What else is in the directory stays.
func writeAll(dir string, files map[string]string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // for everybody to read
		return fmt.Errorf("write the documentation: %w", err)
	}
	for name, text := range files {
		if err := renameio.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return fmt.Errorf("write the documentation: %w", err)
		}
	}
	return nil
}
