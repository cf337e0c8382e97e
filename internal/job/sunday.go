package job

import (
	"strconv"
	"strings"
)

// sundayAsZero rewrites a day-of-week field in which Sunday ends a range, or is
// written as 7, into the values 0 to 6 that the library knows. What it does not
// understand it leaves for the library to refuse.
func sundayAsZero(field string) string {
	elements := strings.Split(field, ",")
	for i, element := range elements {
		elements[i] = expandSunday(element)
	}
	return strings.Join(elements, ",")
}

func expandSunday(element string) string {
	values, stepText, stepped := strings.Cut(element, "/")
	low, high, isRange := strings.Cut(values, "-")
	if !isRange {
		if low == "7" && !stepped {
			return "0"
		}
		return element
	}
	if high != "7" && !strings.EqualFold(high, "sun") {
		return element
	}
	from, ok := weekday(low)
	if !ok || (from == 0 && high != "7") {
		return element
	}
	step := 1
	if stepped {
		n, err := strconv.Atoi(stepText)
		if err != nil || n < 1 {
			return element
		}
		step = n
	}
	var days []string
	for day := from; day <= 7; day += step {
		days = append(days, strconv.Itoa(day%7))
	}
	return strings.Join(days, ",")
}

// weekday reads a day of the week, with 7 left as it is.
func weekday(text string) (int, bool) {
	for n, name := range []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"} {
		if strings.EqualFold(text, name) {
			return n, true
		}
	}
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= 0 && n <= 7
}
