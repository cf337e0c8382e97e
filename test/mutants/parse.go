package main

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// mutant is one small change of the product that breaks a promise.
type mutant struct {
	topic, name string
	promise     string // the promise of DESIGN.md that it breaks
	breaks      string // the consequence for a user
	file        string // path relative to the module
	was, is     string // whole lines
	killed      string // "./package TestName" of the test that fails; "" if not known
	survives    string // why no test can fail
}

// parseAll reads all files of mutants. Each file is a topic.
func parseAll(dir fs.FS) ([]mutant, error) {
	names, err := fs.Glob(dir, "*.txt")
	if err != nil {
		return nil, err
	}
	var all []mutant
	seen := map[string]bool{}
	for _, name := range names {
		text, err := fs.ReadFile(dir, name)
		if err != nil {
			return nil, err
		}
		some, err := parse(strings.TrimSuffix(name, ".txt"), string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, m := range some {
			if seen[m.name] {
				return nil, fmt.Errorf("%s: there are two mutants %s", name, m.name)
			}
			seen[m.name] = true
		}
		all = append(all, some...)
	}
	return all, nil
}

func parse(topic, text string) ([]mutant, error) {
	p := parser{lines: strings.SplitAfter(text, "\n")}
	var all []mutant
	for {
		m, ok, err := p.mutant()
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", p.at, err)
		}
		if !ok {
			return all, nil
		}
		m.topic = topic
		all = append(all, m)
	}
}

type parser struct {
	lines []string
	at    int // index of the next line, and so the number of the last one
}

func (p *parser) next() (line string, ok bool) {
	if p.at == len(p.lines) {
		return "", false
	}
	p.at++
	return p.lines[p.at-1], true
}

func (p *parser) mutant() (m mutant, ok bool, err error) {
	fields := map[string]*string{
		"mutant": &m.name, "promise": &m.promise, "breaks": &m.breaks, "file": &m.file, "killed": &m.killed, "survives": &m.survives,
	}
	for {
		line, more := p.next()
		trimmed := strings.TrimSpace(line)
		key, value, _ := strings.Cut(trimmed, ": ")
		switch {
		case !more && m.name == "":
			return m, false, nil
		case !more:
			return m, false, fmt.Errorf("mutant %s has no <<<", m.name)
		case trimmed == "<<<":
			if m.was, err = p.until("==="); err != nil {
				return m, false, err
			}
			if m.is, err = p.until(">>>"); err != nil {
				return m, false, err
			}
			return m, true, m.complete()
		case trimmed == "" || strings.HasPrefix(line, "#"):
		case fields[key] == nil:
			return m, false, fmt.Errorf("%q is no field", key)
		default:
			*fields[key] = value
		}
	}
}

func (p *parser) until(end string) (string, error) {
	var b strings.Builder
	for {
		line, ok := p.next()
		switch {
		case !ok:
			return "", fmt.Errorf("no %s", end)
		case strings.TrimSpace(line) == end:
			return b.String(), nil
		}
		b.WriteString(line)
	}
}

func (m mutant) complete() error {
	if slices.Contains([]string{m.name, m.promise, m.breaks, m.file, m.was}, "") {
		return errors.New("a mutant needs mutant:, promise:, breaks:, file: and what it replaces")
	}
	if m.was == m.is {
		return fmt.Errorf("mutant %s changes nothing", m.name)
	}
	return nil
}

// apply returns the file's text with the mutation.
func (m mutant) apply(text string) (string, error) {
	if n := strings.Count(text, m.was); n != 1 {
		return "", fmt.Errorf("mutant %s: what it replaces occurs %d times in %s, not once: write it anew for the code of today", m.name, n, m.file)
	}
	return strings.Replace(text, m.was, m.is, 1), nil
}
