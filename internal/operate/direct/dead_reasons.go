package direct

import (
	"cmp"
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"baton/internal/flush/sql"
	"baton/internal/operate"
)

// reasons counts dead letters by job and reason, the most frequent reason first. If one database fails, it still counts the reasons in the
// others.
func (d *deadLetters) reasons(ctx context.Context, f operate.LetterFilter) ([]operate.LetterReason, error) {
	names, err := d.where(f)
	if err != nil {
		return nil, err
	}
	all := []operate.LetterReason{}
	var failed []error
	for _, name := range names {
		found := map[[2]string]*operate.LetterReason{}
		failed = append(failed, d.dbs[name].Reasons(ctx, filterOf(f), func(r sql.Reason) error {
			key := [2]string{r.Job, reasonOf(r.Error)}
			sum, ok := found[key]
			if !ok {
				sum = &operate.LetterReason{
					Job: r.Job, Database: name, Reason: key[1], Oldest: r.Oldest, Newest: r.Newest, Example: r.Example,
				}
				found[key] = sum
			}
			sum.Letters += r.Letters
			if r.Oldest.Before(sum.Oldest) {
				sum.Oldest = r.Oldest
			}
			if r.Newest.After(sum.Newest) {
				sum.Newest = r.Newest
			}
			return nil
		}))
		for _, r := range found {
			all = append(all, *r)
		}
	}
	slices.SortFunc(all, func(a, b operate.LetterReason) int {
		return cmp.Or(cmp.Compare(b.Letters, a.Letters), cmp.Compare(a.Job, b.Job), cmp.Compare(a.Reason, b.Reason))
	})
	return all, errors.Join(failed...)
}

// values matches the parts of an error text that may differ although the reason is the same. A quoted text is such a part, unless one of
// the words below stands before the quoted text. In that case the quoted text is a name, which belongs to the reason.
var values = regexp.MustCompile(`(?s)` +
	`(?:column|constraint|table|relation|input|type|key|CONSTRAINT|KEY|REFERENCES) ["'\x60][^"'\x60]*["'\x60]` +
	`|SQLSTATE \w+|Error \d+` +
	`|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'` +
	`|=\(.*?\) |contains \(.*\)` +
	`|(?:^|[ (])-?[0-9][0-9.e+-]*(?:[ ,;:)]|$)`)

var number = regexp.MustCompile(`-?[0-9][0-9.e+-]*`)

// reasonOf returns the text of an error without the values of one record.
func reasonOf(text string) string {
	return values.ReplaceAllStringFunc(text, func(found string) string {
		switch {
		case found[0] == '"', found[0] == '\'':
			return "…"
		case found[0] == '=':
			return "=(…) "
		case strings.HasPrefix(found, "contains ("):
			return "contains (…)"
		case unicode.IsLetter(rune(found[0])):
			return found
		}
		return number.ReplaceAllString(found, "…")
	})
}
