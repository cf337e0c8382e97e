package schedule

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/robfig/cron/v3"
)

// cronField is one of the five fields of an expression. Its method rewrite writes names, the 7 for Sunday, and ranges that wrap around,
// such as 22-2 and fri-mon, as numbers. All cron implementations interpret these numbers in the same way.
type cronField struct {
	name      string
	option    cron.ParseOption // the option with which the library parses only this field
	low, high int
	names     []string // names of the values, from low on
	others    string   // other allowed values, for errors
}

func cronFields() [5]cronField {
	return [5]cronField{
		{name: "minute", option: cron.Minute, high: 59},
		{name: "hour", option: cron.Hour, high: 23},
		{name: "day of month", option: cron.Dom, low: 1, high: 31, others: ", or L for the last day"},
		{name: "month", option: cron.Month, low: 1, high: 12, others: ", or jan to dec",
			names: []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
		// A day of the week is 0 to 6, and 7 is also Sunday.
		{name: "day of week", option: cron.Dow, high: 6, others: ", or sun to sat",
			names: []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
	}
}

func (f cronField) size() int { return f.high - f.low + 1 }

// rewrite returns the field in numbers. It removes L, the last day of the month, and reports whether the field contained L.
func (f cronField) rewrite(field string) (numbers string, last bool, err error) {
	var out []string
	for element := range strings.SplitSeq(field, ",") {
		if f.option == cron.Dom && strings.EqualFold(element, "L") {
			last = true
			continue
		}
		one, err := f.element(element)
		if err != nil {
			return "", false, err
		}
		out = append(out, one)
	}
	return strings.Join(out, ","), last, nil
}

func (f cronField) element(element string) (string, error) {
	values, stepText, stepped := strings.Cut(element, "/")
	step := 1
	if stepped {
		n, err := strconv.Atoi(stepText)
		if err != nil || n < 1 {
			return "", fmt.Errorf("%q: write a whole number after /, as in */5", element)
		}
		step = n
	}
	if values == "*" || values == "?" {
		return element, nil
	}
	first, second, isRange := strings.Cut(values, "-")
	from, err := f.value(first)
	if err != nil {
		return "", err
	}
	switch {
	case !isRange && !stepped:
		return strconv.Itoa(f.wrapped(from)), nil
	case !isRange && from <= f.high:
		return fmt.Sprintf("%d/%d", from, step), nil
	case !isRange:
		return "", fmt.Errorf("%q: no day follows 7 (Sunday), so the step has no effect; write 0/%d", element, step)
	}
	to, err := f.value(second)
	if err != nil {
		return "", err
	}
	if to < from { // a range over the end, such as 22-2
		to += f.size()
	}
	var list []string
	for v := from; v <= to; v += step {
		list = append(list, strconv.Itoa(f.wrapped(v)))
	}
	return strings.Join(list, ","), nil
}

// wrapped returns the number v, or the number that it stands for if it is beyond the end of the field: counting continues at the field's
// lowest number.
func (f cronField) wrapped(v int) int { return f.low + (v-f.low)%f.size() }

// value reads a number or a name.
func (f cronField) value(text string) (int, error) {
	if i := slices.IndexFunc(f.names, func(name string) bool { return strings.EqualFold(name, text) }); i >= 0 {
		return f.low + i, nil
	}
	highest := f.high
	if f.option == cron.Dow {
		highest = 7
	}
	n, err := strconv.Atoi(text)
	if err == nil && n >= f.low && n <= highest {
		return n, nil
	}
	return 0, fmt.Errorf("write %d to %d%s, not %q%s", f.low, highest, f.others, text, instead(text))
}

// The function instead returns advice for a text that only other schedulers accept: what to write in baton.
func instead(text string) string {
	upper := strings.ToUpper(text)
	switch {
	case upper == "H" || strings.HasPrefix(upper, "H("):
		return "; Jenkins replaces H with a number: write a number here, and use jitter: to spread jobs"
	case strings.Contains(upper, "#"):
		return "; for the second Friday run on every Friday (5), and let the command look at the date"
	case strings.HasSuffix(upper, "W"):
		return "; for the nearest working day run on 1-5, and let the command look at the date"
	case strings.HasSuffix(upper, "L") && len(upper) > 1:
		return "; crons interpret L after a day in different ways: run on every such day, and let the command look at the date"
	}
	return ""
}
