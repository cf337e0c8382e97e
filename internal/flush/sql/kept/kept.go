package kept

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Cell is the name of a column and its value in one row. The value has a type that a database's driver accepts as an argument: nil, an
// integer, a float, string or []byte.
type Cell struct {
	Name  string
	Value any
}

// encoded is the JSON form of bytes and of a text that is not UTF-8.
type encoded struct {
	Bytes *[]byte `json:"base64,omitempty"`
	Text  *[]byte `json:"text_base64,omitempty"`
}

// Encode returns the row as JSON. It writes a float with as many digits as its type needs.
func Encode(cells []Cell) (string, error) {
	var b bytes.Buffer
	for i, c := range cells {
		b.WriteByte("{,"[min(i, 1)])
		name, err := plain(c.Name)
		if err != nil {
			return "", err
		}
		value, err := encode(c.Value)
		if err != nil {
			return "", fmt.Errorf("column %q: %w", c.Name, err)
		}
		b.WriteString(name + ":" + value)
	}
	if len(cells) == 0 {
		b.WriteByte('{')
	}
	b.WriteByte('}')
	return b.String(), nil
}

func encode(value any) (string, error) {
	switch v := value.(type) {
	case nil:
		return "null", nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	case uint64:
		return strconv.FormatUint(v, 10), nil
	case float32:
		return number(float64(v), 32), nil
	case float64:
		return number(v, 64), nil
	case []byte:
		v = append([]byte{}, v...) // so that empty bytes do not become NULL
		return plain(encoded{Bytes: &v})
	case string:
		if !utf8.ValidString(v) {
			text := []byte(v)
			return plain(encoded{Text: &text})
		}
		return plain(v)
	}
	return "", fmt.Errorf("a %T cannot be kept: this is a mistake in baton, please report it", value)
}

// number formats a float. The result always contains a point or an exponent, so that Decode does not read it as an integer. An infinity,
// which only SQLite can store, gets the exponent in infinite.
func number(v float64, bits int) string {
	if math.IsInf(v, 0) {
		return strconv.FormatFloat(math.Copysign(1, v), 'f', 0, 64) + infinite
	}
	text := strconv.FormatFloat(v, 'g', -1, bits)
	if !strings.ContainsAny(text, ".e") {
		text += ".0"
	}
	return text
}

// infinite is an exponent that is too large for a float, so a number with this exponent stands for infinity.
const infinite = "e999"

func plain(v any) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return strings.TrimSuffix(b.String(), "\n"), err
}

var errForm = errors.New("this is not a row that baton has kept")

// Decode returns the cells of a row that Encode has encoded, in the same order.
func Decode(text string) ([]Cell, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return nil, errors.Join(errForm, err)
	}
	var cells []Cell
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, errors.Join(errForm, err)
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return nil, errors.Join(errForm, err)
		}
		c := Cell{Name: fmt.Sprint(name)}
		if c.Value, err = decode(raw); err != nil {
			return nil, fmt.Errorf("column %q: %w", c.Name, errors.Join(errForm, err))
		}
		cells = append(cells, c)
	}
	_, err := d.Token()
	return cells, err
}

func decode(raw json.RawMessage) (any, error) {
	switch raw[0] {
	case 'n':
		return nil, nil
	case '"':
		var s string
		err := json.Unmarshal(raw, &s)
		return s, err
	case '{':
		var e encoded
		if err := json.Unmarshal(raw, &e); err != nil {
			return nil, err
		}
		switch {
		case e.Bytes != nil:
			return *e.Bytes, nil
		case e.Text != nil:
			return string(*e.Text), nil
		}
		return nil, errForm
	}
	number := string(raw)
	if strings.ContainsAny(number, ".e") {
		f, err := strconv.ParseFloat(number, 64)
		if strings.HasSuffix(number, infinite) {
			err = nil
		}
		return f, err
	}
	if n, err := strconv.ParseInt(number, 10, 64); err == nil {
		return n, nil
	}
	return strconv.ParseUint(number, 10, 64)
}
