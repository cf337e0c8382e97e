package main

import (
	"os"
	"regexp"
	"strings"
)

// longest is the maximum number of words in a sentence. A text of fewer than shortest words does not count as a sentence.
const (
	longest  = 30
	shortest = 5
)

// marks are the marks of the roundabout manner. tools/vale/styles contains the same marks.
var marks = []struct {
	name string
	re   *regexp.Regexp
}{
	{"headless what/who", word(`(what|who) (is|was|are|it|they|has|had|comes|came|waits|others|one|a|the|no|we|follows|asks|reads|` +
		`leads|may|can)`)},
	{"of which, to whom", word(`(of|in|by|to|from|for|with|after|before|at|on|behind|below) (which|whom)`)},
	{"is told, is asked", word(`(is|are|was|were|be|been) (told|asked|said|known|heard|had|taken for|looked (at|for|up))`)},
	{"nobody, whoever", word(`(nobody|whoever|none of|there is none|no one|anybody|everybody)`)},
	{"so often, all the same", word(`(so (often|long|many|much)|as ever|all the same|ahead of its|in its turn|by itself|` +
		`anew|but for|not any more)`)},
}

func word(pattern string) *regexp.Regexp { return regexp.MustCompile(`(?i)\b` + pattern + `\b`) }

func marksOf(sentence string) []string {
	var found []string
	for _, m := range marks {
		if m.re.MatchString(sentence) {
			found = append(found, m.name)
		}
	}
	return found
}

// ends matches the end of a sentence: a mark followed by a space.
var ends = regexp.MustCompile(`[.;:!?] `)

func sentences(block string) []string {
	block = strings.Join(strings.Fields(block), " ")
	var list []string
	for s := range strings.SplitSeq(ends.ReplaceAllStringFunc(block, func(end string) string { return end[:1] + "\n" }), "\n") {
		if words := strings.Fields(s); len(words) >= shortest {
			list = append(list, s)
		}
	}
	return list
}

var (
	fenced = regexp.MustCompile("(?ms)^(?:```|~~~).*?^(?:```|~~~)")
	quoted = regexp.MustCompile("`[^`]*`")
	blank  = regexp.MustCompile(`\n\s*\n`)
)

// page adds a page of Markdown, without its code, headings and tables.
func (b book) page(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for _, p := range blank.Split(fenced.ReplaceAllString(string(text), ""), -1) {
		if !strings.HasPrefix(p, "    ") && !strings.ContainsAny(strings.TrimSpace(p + "|")[:1], "|#!<") {
			b.add(place{docs, path}, quoted.ReplaceAllString(p, "X"), path)
		}
	}
	return nil
}
