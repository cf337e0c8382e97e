// Package shape splits YAML into the tokens of the parser. It rejects a text that is nested too deeply, too wide or too dense before the
// text is parsed. Otherwise a leader that reloads an invalid file could lose its lease, or use up its memory.
package shape

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/goccy/go-yaml/scanner"
	"github.com/goccy/go-yaml/token"
)

// These are the limits of a file's structure. The parser's time and memory grow with the square of the depth and the width, and with the
// square of the number of keys without values, anchors and tags. Without limits, 60 KB of brackets need 1.5 GB, and 1 MiB of tags need
// minutes.
const (
	maxTokens  = 300_000 // a file with a thousand jobs has 100,000 tokens
	maxNulls   = 2000    // keys without a value, inside of braces
	maxMarks   = 100     // anchors, aliases, tags and directives; the decoder rejects the first one and names its path
	maxDepth   = 32      // nested mappings and lists; baton's own settings need 8 levels
	maxKeys    = 2000    // keys of one mapping; no table has more columns
	maxEntries = 10_000  // entries of one list
)

// collection is a mapping or a list whose end has not been read yet.
type collection struct {
	column        int  // the indentation of a block
	flow          bool // the collection is in brackets
	keys, entries int
}

// shape records which mappings and lists are open after each token.
type shape struct {
	open []collection
	// tokens, nulls and marks are the counts that are compared with the limits. broken means that the parser rejects the last token.
	tokens, nulls, marks int
	broken               bool

	line int          // the line of the last token
	last *token.Token // the last token in this line
}

// LimitError is the error of a file that exceeds a limit, with the place in the file.
type LimitError struct {
	Line, Column int
	Message      string
}

func (e *LimitError) Error() string { return e.Message }

// Tokens splits a text into the tokens of the parser. Its error is a LimitError.
func Tokens(text string) (all token.Tokens, err error) {
	var s scanner.Scanner
	s.Init(text)
	var at shape
	for {
		some, err := s.Scan()
		if errors.Is(err, io.EOF) {
			return whole(all), nil
		}
		for _, t := range some { // also after an error, because the parser finds the error in the tokens
			if message := at.add(t); message != "" {
				return nil, &LimitError{Line: t.Position.Line, Column: t.Position.Column, Message: message}
			}
			all.Add(t)
			if at.broken { // further mistakes would only result from this one
				return whole(all), nil
			}
		}
	}
}

// add records a token. It returns the name of the exceeded limit, or "".
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

// dedent closes the blocks whose indentation is larger than the argument column.
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

// close closes the innermost open brackets. It reports whether any brackets were open.
func (s *shape) close() bool {
	for n, c := range slices.Backward(s.open) {
		if c.flow {
			s.open = s.open[:n]
			return true
		}
	}
	return false
}

// in returns the collection that contains an entry at the column. It opens a block if this is the block's first entry.
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
