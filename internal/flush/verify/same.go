package verify

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"baton/internal/flush/row"
)

// same reports whether the value want is equal to the database's text for the column. The result sure is false if only the database can
// decide.
func same(c row.Column, want row.Value, have row.Raw) (equal, sure bool) {
	if want.IsNull() || !have.OK {
		return want.IsNull() && !have.OK, true
	}
	if c.Kind == row.KindOther {
		text, _ := want.Show()
		if c.Several {
			return slices.Equal(members(text), members(have.Text)), true
		}
		return text == have.Text, text == have.Text
	}
	switch want.Kind() {
	case row.KindInteger, row.KindNumeric:
		return sameNumber(want.NumberText(), have.Text), true
	case row.KindFloat:
		equal := sameFloat(c, want.Float(), have.Text)
		return equal, equal // if the texts differ, the server may have shown fewer digits
	case row.KindBoolean:
		return sameBoolean(want.Bool(), have.Text), true
	case row.KindTimestamp:
		t, ok := instant(have.Text)
		return ok && t.Equal(want.Time()), true
	case row.KindDate:
		return len(have.Text) >= len(time.DateOnly) && have.Text[:len(time.DateOnly)] == want.Time().Format(time.DateOnly), true
	case row.KindJSON:
		return sameJSON(want.Text(), have.Text), true
	case row.KindUUID:
		return strings.EqualFold(want.Text(), have.Text), true
	case row.KindText:
		if c.Padded {
			return strings.TrimRight(want.Text(), " ") == strings.TrimRight(have.Text, " "), true
		}
	}
	return want.Text() == have.Text, true
}

// members returns the values of a SET, sorted and without duplicates.
func members(text string) []string {
	all := strings.Split(text, ",")
	slices.Sort(all)
	return slices.Compact(all)
}

func sameNumber(a, b string) bool {
	if a == b {
		return true
	}
	x, errX := row.PlainDecimal(a)
	y, errY := row.PlainDecimal(b)
	return errX == nil && errY == nil &&
		row.Compare(row.String(row.KindNumeric, x), row.String(row.KindNumeric, y)) == 0
}

// sameFloat compares a float with a text of the database, with the precision of the column.
func sameFloat(c row.Column, want float64, text string) bool {
	have, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return false
	}
	switch {
	case c.Bits == 32:
		return float32(have) == float32(want)
	case c.Precision > 0: // the column rounds to that many digits
		return math.Abs(have-want) < math.Pow10(-c.Scale)/2
	}
	return have == want
}

func sameBoolean(want bool, text string) bool {
	switch text {
	case "1", "t", "true":
		return want
	case "0", "f", "false":
		return !want
	}
	return false
}

// instants are the layouts in which databases write times. A time without an offset is in UTC.
var instants = []string{
	"2006-01-02 15:04:05", "2006-01-02 15:04:05Z07", "2006-01-02 15:04:05Z07:00", time.RFC3339Nano, time.DateOnly,
}

func instant(text string) (time.Time, bool) {
	for _, layout := range instants {
		if t, err := time.Parse(layout, text); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// sameJSON compares the meaning of two texts. It ignores the order of members, and the spelling of numbers and strings.
func sameJSON(a, b string) bool {
	if a == b {
		return true
	}
	x, okX := decode(a)
	y, okY := decode(b)
	return okX && okY && sameTree(x, y)
}

func decode(text string) (tree any, ok bool) {
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.UseNumber()
	err := d.Decode(&tree)
	return tree, err == nil && !d.More()
}

func sameTree(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		return ok && sameNumber(a.String(), b.String())
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !sameTree(a[i], b[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for name, value := range a {
			other, there := b[name]
			if !there || !sameTree(value, other) {
				return false
			}
		}
		return true
	}
	return a == b
}
