package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// grafana reads a dashboard by the types that Grafana's own schema generates, those of its panels and
// queries too: an unknown field, a value of another type and a broken constraint are errors.
func grafana(out io.Writer, path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	plugins.RegisterDefaultPlugins()
	var board dashboard.Dashboard
	if err := errors.Join(found(board.UnmarshalJSONStrict(text)), found(board.Validate())); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	fmt.Fprintf(out, "grafana dashboard: %d rows and panels\n", len(board.Panels))
	return nil
}

// found is err, or nil for the empty list of errors that the library returns where it found none.
func found(err error) error {
	if list, ok := err.(cog.BuildErrors); ok && len(list) == 0 {
		return nil
	}
	return err
}
