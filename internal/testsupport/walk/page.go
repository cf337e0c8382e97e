// Package walk reads the pages of the documentation, and tests a page literally: it runs each block of commands on the host that the block
// names, and compares the output with the output on the page.
//
// The first line of a block that is run names a host. This line may also say how long the output may take to appear:
//
//	```sh host=one within=20s
//	baton leader
//	```
//
// A block of kind text directly after that block contains the expected output, line by line. "…" matches any text, white space matches any
// white space, and the output may contain further lines.
package walk

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"
)

// Block is a fenced block (```) of a page.
type Block struct {
	Page string // path of the page
	Line int    // line number of its first fence
	Kind string // sh, yaml, text, ...
	Host string // the host that runs the block; "" if the block names none
	// Within is the time for which the block is repeated until its output is as expected.
	Within time.Duration
	Text   string
	// Before is the last line above the block that is not empty.
	Before string
}

// String returns the position of the block, for messages.
func (b Block) String() string { return fmt.Sprintf("%s:%d", b.Page, b.Line) }

var attribute = regexp.MustCompile(`(\w+)=(\S+)`)

// Read returns the blocks of a page, in order.
func Read(path string) ([]Block, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var blocks []Block
	var open *Block
	var indent, before string
	for i, line := range strings.Split(string(text), "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case open == nil && strings.HasPrefix(trimmed, "```"):
			indent, _, _ = strings.Cut(line, "`")
			open = &Block{Page: path, Line: i + 1, Before: before}
			if err := open.attributes(strings.TrimPrefix(trimmed, "```")); err != nil {
				return nil, fmt.Errorf("%s: %w", open, err)
			}
		case open != nil && trimmed == "```":
			blocks = append(blocks, *open)
			open, before = nil, trimmed
		case open != nil:
			open.Text += strings.TrimPrefix(line, indent) + "\n"
		case trimmed != "":
			before = trimmed
		}
	}
	if open != nil {
		return nil, fmt.Errorf("%s: the block has no end", open)
	}
	return blocks, nil
}

func (b *Block) attributes(info string) error {
	b.Kind, info, _ = strings.Cut(info, " ")
	for _, m := range attribute.FindAllStringSubmatch(info, -1) {
		switch m[1] {
		case "host":
			b.Host = m[2]
		case "within":
			d, err := time.ParseDuration(m[2])
			if err != nil {
				return err
			}
			b.Within = d
		default:
			return fmt.Errorf("unknown attribute %s", m[0])
		}
	}
	return nil
}
