package rig

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Report prints what was measured, as Markdown that can be read as it is, and
// remembers what was missed.
type Report struct {
	out    io.Writer
	text   bytes.Buffer // what goes into the document
	missed []error
}

// NewReport prints to out.
func NewReport(out io.Writer) *Report { return &Report{out: out} }

// Progress is for whoever waits, not for the document.
func (r *Report) Progress(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// Printf prints a line.
func (r *Report) Printf(format string, args ...any) {
	fmt.Fprintf(io.MultiWriter(r.out, &r.text), format+"\n", args...)
}

// Want prints a figure beside what is required of it.
func (r *Report) Want(ok bool, format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	if !ok {
		r.missed = append(r.missed, errors.New("missed: "+line))
		line = "**MISSED** " + line
	}
	r.Printf("- %s", line)
}

// Verdict is what was missed, or nil.
func (r *Report) Verdict() error { return errors.Join(r.missed...) }

// WriteInto replaces what stands in a document between the two comments that say
// which make target writes there.
func (r *Report) WriteInto(name, target string) error {
	begin, end := "<!-- begin: written by "+target+" -->", "<!-- end: written by "+target+" -->"
	document, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	before, rest, begun := strings.Cut(string(document), begin)
	_, after, ended := strings.Cut(rest, end)
	if !begun || !ended {
		return fmt.Errorf("%s has no lines %q and %q to write between", name, begin, end)
	}
	text := before + begin + "\n" + time.Now().Format("2 January 2006") + ", " + r.text.String() + end + after
	return os.WriteFile(name, []byte(text), 0o644) //nolint:gosec // a document that everybody may read
}

// WriteWithChart is WriteInto, and puts the chart beside the document.
func (r *Report) WriteWithChart(name, target, chart, svg string) error {
	return errors.Join(r.WriteInto(name, target),
		os.WriteFile(filepath.Join(filepath.Dir(name), chart), []byte(svg), 0o644)) //nolint:gosec // everybody may read it
}
