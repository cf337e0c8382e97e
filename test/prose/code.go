package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// code adds the comments of a file, including comments at the end of a line of code, and its texts.
func (b book) code(path string) error {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, path, nil, parser.ParseComments)
	if err != nil {
		return err
	}
	at := func(p token.Pos) string { return fmt.Sprintf("%s:%d", path, set.Position(p).Line) }
	dir := filepath.Dir(path)
	for _, c := range f.Comments {
		for block := range strings.SplitSeq(proseOf(c), "\n\n") {
			b.add(place{comments, dir}, quoted.ReplaceAllString(block, "X"), at(c.Pos()))
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			n.Tag = nil // a tag is for programs
		case ast.Expr:
			if text, ok := literal(n); ok {
				if !forPrograms.MatchString(text) {
					b.add(place{texts, dir}, quoted.ReplaceAllString(text, "X"), at(n.Pos()))
				}
				return false
			}
		}
		return true
	})
	return nil
}

// proseOf returns the text of a comment without directives and indented code.
func proseOf(c *ast.CommentGroup) string {
	var out strings.Builder
	for line := range strings.SplitSeq(c.Text(), "\n") {
		switch {
		case strings.HasPrefix(line, "\t"), strings.HasPrefix(line, "nolint"):
		case strings.TrimSpace(line) == "":
			out.WriteString("\n")
		default:
			out.WriteString(line + "\n")
		}
	}
	return out.String()
}

// forPrograms matches a text that people do not read: SQL, Lua, HTML, a template.
var forPrograms = regexp.MustCompile(`\b(SELECT|INSERT|UPDATE|DELETE FROM|CREATE|ALTER|WITH|FROM|VALUES|SET|redis\.call|local)\b.*[=(*]` +
	`|</|{{|^\s*[.#@<{]`)

// literal returns the text of a string, or of a sum that contains one. X stands for all other parts of the sum.
func literal(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.ParenExpr:
		return literal(e.X)
	case *ast.BinaryExpr:
		if e.Op != token.ADD {
			return "", false
		}
		x, left := literal(e.X)
		y, right := literal(e.Y)
		if !left && !right {
			return "", false
		}
		if !left {
			x = "X"
		}
		if !right {
			y = "X"
		}
		return x + y, true
	}
	return "", false
}
