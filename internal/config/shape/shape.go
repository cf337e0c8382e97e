// Package shape splits YAML into the parser's words. It refuses a text that is nested too deep, too wide or too dense,
// before it is parsed: a leader that reloads must not lose its lease, or its memory, over a file that is no configuration.
package shape

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/goccy/go-yaml/scanner"
	"github.com/goccy/go-yaml/token"
)

// The limits of a file's shape. The parser's time and memory grow with the square of depth and width, and of keys
// without values, anchors and tags: without limits 60 KB of brackets take 1.5 GB, and 1 MiB of tags takes minutes.
const (
	maxTokens  = 300_000 // a thousand jobs have 100,000
	maxNulls   = 2000    // keys without a value, in braces
	maxMarks   = 100     // anchors, aliases, tags and directives; the decoder refuses the first one, with its path
	maxDepth   = 32      // mappings and lists within each other; baton's own settings have 8
	maxKeys    = 2000    // of one mapping: no table has more columns
	maxEntries = 10_000  // of one list
)

// collection is a mapping or a list that is open.
type collection struct {
	column        int  // of a block: where it is indented to
	flow          bool // it is in brackets
	keys, entries int
}

// shape follows which mappings and lists are open, token by token.
type shape struct {
	open []collection
	// tokens, nulls and marks count against the limits. broken: the last token is one that the parser refuses.
	tokens, nulls, marks int
	broken               bool

	line int          // of the last token
	last *token.Token // in this line
}

// Excess is the error of a file that exceeds a limit, at its place.
type Excess struct {
	Line, Column int
	Message      string
}

func (e *Excess) Error() string { return e.Message }

// Tokens splits a text into the parser's words. Its error is an Excess.
func Tokens(text string) (all token.Tokens, err error) {
	var s scanner.Scanner
	s.Init(text)
	var at shape
	for {
		some, err := s.Scan()
		if errors.Is(err, io.EOF) {
			return whole(all), nil
		}
		for _, t := range some { // also after an error: the parser tells it by the words
			if message := at.add(t); message != "" {
				return nil, &Excess{Line: t.Position.Line, Column: t.Position.Column, Message: message}
			}
			all.Add(t)
			if at.broken { // further mistakes would only be its consequences
				return whole(all), nil
			}
		}
	}
}

// add follows a token. It returns what exceeds a limit; "" if nothing does.
func (s *shape) add(t *token.Token) string {
	if t.Type == token.CommentType || t.Position == nil {
		return ""
	}
	if t.Position.Line != s.line {
		s.line, s.last = t.Position.Line, nil
		s.dedent(t.Position.Column)
	}
	s.tokens++
	switch t.Type {
	case token.InvalidType:
		s.broken = true
	case token.DoubleQuoteType, token.SingleQuoteType, token.StringType:
		s.broken = s.last != nil && (s.last.Type == token.DoubleQuoteType || s.last.Type == token.SingleQuoteType)
	case token.AnchorType, token.AliasType, token.TagType, token.DirectiveType:
		s.marks++
	case token.SequenceStartType, token.MappingStartType:
		s.open = append(s.open, collection{flow: true})
	case token.SequenceEndType, token.MappingEndType:
		s.null()
		s.broken = !s.close()
	case token.CollectEntryType: // the comma
		s.null()
		s.in(-1).entries++
	case token.SequenceEntryType: // the dash of a list
		s.in(t.Position.Column).entries++
	case token.MappingKeyType: // the question mark of a key
		s.in(t.Position.Column).keys++
	case token.MappingValueType: // the colon
		key := t
		if s.last != nil {
			key = s.last
		}
		s.in(key.Position.Column).keys++
	}
	s.last = t
	return s.excess()
}

// dedent ends the blocks that are indented further than a line.
func (s *shape) dedent(column int) {
	for n := len(s.open); n > 0 && !s.open[n-1].flow && s.open[n-1].column > column; n-- {
		s.open = s.open[:n-1]
	}
}

// null counts a key that ends without a value.
func (s *shape) null() {
	if s.last != nil && s.last.Type == token.MappingValueType {
		s.nulls++
	}
}

// close ends the innermost brackets. It reports whether there are any.
func (s *shape) close() bool {
	for n, c := range slices.Backward(s.open) {
		if c.flow {
			s.open = s.open[:n]
			return true
		}
	}
	return false
}

// in is the collection that has an entry at a column. A block begins with its first entry.
func (s *shape) in(column int) *collection {
	n := len(s.open)
	if n == 0 || !s.open[n-1].flow && s.open[n-1].column < column {
		s.open = append(s.open, collection{column: column})
		n++
	}
	return &s.open[n-1]
}

func (s *shape) excess() string {
	switch {
	case s.tokens > maxTokens:
		return fmt.Sprintf("more than %d words and signs: is this baton's configuration?", maxTokens)
	case s.nulls > maxNulls:
		return fmt.Sprintf("more than %d keys without a value: is this baton's configuration?", maxNulls)
	case s.marks > maxMarks:
		return fmt.Sprintf("more than %d anchors, aliases, tags and directives: baton has none of them; write the values out", maxMarks)
	}
	if len(s.open) > maxDepth {
		return fmt.Sprintf("nested deeper than %d levels: is this baton's configuration, and is a bracket or the indentation wrong?",
			maxDepth)
	}
	if n := len(s.open); n > 0 && s.open[n-1].keys > maxKeys {
		return fmt.Sprintf("a mapping of more than %d keys: is this baton's configuration?", maxKeys)
	} else if n > 0 && s.open[n-1].entries > maxEntries {
		return fmt.Sprintf("a list of more than %d entries: is this baton's configuration?", maxEntries)
	}
	return ""
}
