package rig

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Report prints results as Markdown that is also readable on a terminal, and collects missed requirements.
type Report struct {
	out    io.Writer
	text   bytes.Buffer // the text for the document
	missed []error
}

// NewReport returns a Report that prints to out.
func NewReport(out io.Writer) *Report { return &Report{out: out} }

// Progress prints a line for the person who waits. The line does not become part of the document.
func (r *Report) Progress(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// Printf prints a line.
func (r *Report) Printf(format string, args ...any) {
	fmt.Fprintf(io.MultiWriter(r.out, &r.text), format+"\n", args...)
}

// Want prints a figure beside its requirement.
func (r *Report) Want(ok bool, format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	if !ok {
		r.missed = append(r.missed, errors.New("missed: "+line))
		line = "**MISSED** " + line
	}
	r.Printf("- %s", line)
}

// Verdict returns the error of the missed requirements, or nil.
func (r *Report) Verdict() error { return errors.Join(r.missed...) }

// WriteInto replaces the text in a document between the two comments of a make target. Sections that this run did not measure stay as
// they are: each contains the time and the machine of its measurement.
func (r *Report) WriteInto(name, target string) error {
	begin, end := "<!-- begin: written by "+target+" -->", "<!-- end: written by "+target+" -->"
	document, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	before, rest, begun := strings.Cut(string(document), begin+"\n")
	old, after, ended := strings.Cut(rest, end)
	if !begun || !ended {
		return fmt.Errorf("%s has no lines %q and %q to write between", name, begin, end)
	}
	text := before + begin + "\n" + merged(old, time.Now().Format("2 January 2006")+", "+r.text.String()) + end + after
	return os.WriteFile(name, []byte(text), 0o644) //nolint:gosec // a document that everybody may read
}

// heading begins a section.
const heading = "### "

// merged returns the text of a run, together with the sections of an older text that the run does not have.
func merged(old, text string) string {
	if !strings.Contains(text, "\n"+heading) {
		return text
	}
	sections := cut(old)
	for _, s := range cut(text) {
		if i := slices.IndexFunc(sections, func(o section) bool { return o.title == s.title }); i >= 0 {
			sections[i] = s
		} else {
			sections = append(sections, s)
		}
	}
	var all []string
	for _, s := range sections {
		all = append(all, heading+s.title+"\n\n"+s.text+"\n")
	}
	return strings.Join(all, "\n")
}

type section struct{ title, text string }

// cut splits a text into its sections. It adds to each section the lines before the first section: the time and the machine of the
// measurement.
func cut(text string) (sections []section) {
	parts := strings.Split("\n"+text, "\n"+heading)
	measured := strings.TrimSpace(parts[0])
	for _, part := range parts[1:] {
		title, rest, _ := strings.Cut(part, "\n")
		rest = strings.TrimSpace(rest)
		if measured != "" {
			rest = measured + "\n\n" + rest
		}
		sections = append(sections, section{title, rest})
	}
	return sections
}

// WriteWithChart works like WriteInto, and also writes the chart to a path relative to the document.
func (r *Report) WriteWithChart(name, target, chart, svg string) error {
	return errors.Join(r.WriteInto(name, target),
		os.WriteFile(filepath.Join(filepath.Dir(name), chart), []byte(svg), 0o644)) //nolint:gosec // everybody may read it
}
