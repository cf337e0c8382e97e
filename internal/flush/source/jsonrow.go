package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"baton/internal/flush/row"
	"baton/internal/redisconn"
)

// Why a text is no row.
var (
	errNoObject   = errors.New("it is JSON, but not an object")
	errEmptyText  = errors.New("it is empty")
	errMoreValues = errors.New("something follows the object")
)

// objectDecoder reads the wanted members of JSON objects, one object after the other.
//
// It is strict, because what a text may mean in more than one way would be changed
// silently by taking one of them: a name that is there twice, at any depth, bytes that
// are not UTF-8 and escaped halves of a surrogate pair are errors, like everything
// that RFC 8259 has no grammar for.
type objectDecoder struct {
	wanted []string
	text   *bytes.Buffer
	json   *jsontext.Decoder
	names  []string // of the members so far
}

func newObjectDecoder(wanted []string) objectDecoder {
	text := &bytes.Buffer{}
	return objectDecoder{wanted: wanted, text: text, json: jsontext.NewDecoder(text)}
}

// decodeObject reads one object. Use an objectDecoder where there are many.
func decodeObject(text []byte, wanted []string, into []row.Raw) error {
	d := newObjectDecoder(wanted)
	return d.decode(string(text), text, into)
}

// decode reads the object that text is, and raw too, into the wanted members:
//
//	a string              what it says, without its escapes
//	a number              the digits as they are written
//	true, false           these words
//	null, or no member    not OK
//	an object, an array   their JSON text as it is written
//
// Where nothing has to be unescaped they are parts of text, and cost no memory. After
// an error none is OK.
func (d *objectDecoder) decode(text string, raw []byte, into []row.Raw) error {
	clear(into)
	if d.plain(text, into) {
		return nil
	}
	clear(into)
	*d.text = *bytes.NewBuffer(raw) // which the decoder reads in its place
	d.json.Reset(d.text)
	err := d.members(text, into)
	if err == nil {
		return nil
	}
	clear(into)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("it ends too early: %w", err)
	}
	return fmt.Errorf("not a row: %w", err)
}

func (d *objectDecoder) members(text string, into []row.Raw) error {
	switch open, err := d.json.ReadToken(); {
	case errors.Is(err, io.EOF):
		return errEmptyText
	case err != nil:
		return err
	case open.Kind() != '{':
		return errNoObject
	}
	for next := 0; d.json.PeekKind() != '}'; next++ {
		name, err := d.json.ReadValue()
		if err != nil {
			return err
		}
		var found bool
		if next, found, err = d.find(name, next); err != nil {
			return err
		}
		if !found {
			if err := d.json.SkipValue(); err != nil {
				return err
			}
			continue
		}
		value, err := d.json.ReadValue()
		if err != nil {
			return err
		}
		if into[next], err = d.raw(text, value); err != nil {
			return err
		}
	}
	if _, err := d.json.ReadToken(); err != nil { // its end
		return err
	}
	switch _, err := d.json.ReadToken(); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return err
	}
	return errMoreValues
}

// find looks a quoted name up among the wanted ones. Objects of one producer have
// their members in one order: it begins where that of the last one would be.
func (d *objectDecoder) find(name []byte, from int) (at int, found bool, err error) {
	plain := name[1 : len(name)-1]
	if bytes.IndexByte(plain, '\\') >= 0 {
		if plain, err = jsontext.AppendUnquote(nil, name); err != nil {
			return 0, false, err
		}
	}
	at, found = indexOf(d.wanted, plain, from)
	return at, found, nil
}

// indexOf looks a name up, beginning at from. Where it is not found, at is the place
// before from: the search for the next name begins at from again.
func indexOf[T string | []byte](names []string, name T, from int) (at int, found bool) {
	n := len(names)
	for i := range n {
		at := from + i
		if at >= n {
			at -= n
		}
		if at < n && names[at] == string(name) {
			return at, true
		}
	}
	return from - 1, false
}

// raw is the text of a value that was read last.
func (d *objectDecoder) raw(text string, value jsontext.Value) (row.Raw, error) {
	end := int(d.json.InputOffset())
	switch value.Kind() {
	case 'n':
		return row.Raw{}, nil
	case '"':
		if bytes.IndexByte(value, '\\') < 0 {
			return row.Raw{Text: text[end-len(value)+1 : end-1], OK: true}, nil
		}
		plain, err := jsontext.AppendUnquote(nil, value)
		return row.Raw{Text: string(plain), OK: true}, err
	}
	return row.Raw{Text: text[end-len(value) : end], OK: true}, nil
}

// plainNames is how many members an object may have that is read as a plain one.
const plainNames = 32

// plain reads an object as producers mostly write them: its members are numbers, words, and
// strings without escapes. It says false of any other, and of all that is doubtful: the
// decoder, which takes four times as long, reads that, and knows what is wrong with it.
func (d *objectDecoder) plain(text string, into []row.Raw) bool {
	p := plainText{text: text}
	if d.names = d.names[:0]; !p.take('{') {
		return false
	}
	if p.take('}') {
		return p.end()
	}
	for next := 0; len(d.names) < plainNames; next++ {
		name, ok := p.quoted()
		if !ok || slices.Contains(d.names, name) || !p.take(':') {
			return false
		}
		d.names = append(d.names, name)
		value, ok := p.value()
		if !ok {
			return false
		}
		var found bool
		if next, found = indexOf(d.wanted, name, next); found {
			into[next] = value
		}
		if !p.take(',') {
			return p.take('}') && p.end()
		}
	}
	return false
}

// plainText is an object, and how far it has been read.
type plainText struct {
	text string
	at   int
}

// next is the first byte of the next token; 0 if there is none.
func (p *plainText) next() byte {
	for ; p.at < len(p.text); p.at++ {
		if c := p.text[p.at]; c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			return c
		}
	}
	return 0
}

// take takes a token of one byte, if it comes next.
func (p *plainText) take(token byte) bool {
	if p.next() != token {
		return false
	}
	p.at++
	return true
}

// end reports whether nothing follows.
func (p *plainText) end() bool { return p.next() == 0 && p.at == len(p.text) }

// ends are the bytes that end a string as it is written: what follows says something else.
var ends = func() (ends [256]bool) {
	for c := range ' ' {
		ends[c] = true
	}
	ends['"'], ends['\\'] = true, true
	return ends
}()

// quoted takes a string that says what is written.
func (p *plainText) quoted() (text string, ok bool) {
	if !p.take('"') {
		return "", false
	}
	begin, i, all := p.at, p.at, byte(0)
	for i < len(p.text) && !ends[p.text[i]] {
		all |= p.text[i]
		i++
	}
	if i == len(p.text) || p.text[i] != '"' {
		return "", false
	}
	p.at = i + 1
	text = p.text[begin:i]
	return text, all < utf8.RuneSelf || utf8.ValidString(text)
}

func (p *plainText) value() (raw row.Raw, ok bool) {
	rest, length := "", 0
	switch c := p.next(); c {
	case '"':
		raw.Text, raw.OK = p.quoted()
		return raw, raw.OK
	case 't', 'f', 'n':
		rest = p.text[p.at:]
		for _, word := range []string{"true", "false", "null"} {
			if strings.HasPrefix(rest, word) {
				length = len(word)
			}
		}
		raw.OK = c != 'n'
	default:
		rest = p.text[p.at:]
		length, raw.OK = numberLength(rest), true
	}
	if raw.OK {
		raw.Text = rest[:length]
	}
	p.at += length
	return raw, length > 0
}

// numberLength is how long the number is that a text begins with; 0 if it is none.
func numberLength(t string) int {
	digits := func(i int) int {
		for i < len(t) && '0' <= t[i] && t[i] <= '9' {
			i++
		}
		return i
	}
	begin := 0
	if strings.HasPrefix(t, "-") {
		begin = 1
	}
	end := digits(begin)
	if end == begin || end > begin+1 && t[begin] == '0' {
		return 0
	}
	if end < len(t) && t[end] == '.' {
		begin = end + 1
		if end = digits(begin); end == begin {
			return 0
		}
	}
	if end < len(t) && (t[end] == 'e' || t[end] == 'E') {
		begin = end + 1
		if begin < len(t) && (t[begin] == '+' || t[begin] == '-') {
			begin++
		}
		if end = digits(begin); end == begin {
			return 0
		}
	}
	return end
}

// items reads what lists hold, a question at a time.
type items struct {
	inputs []string
	object objectDecoder
	pace   pace
	found  int // how many the last question has found
}

func newItems(inputs []string, budget int) *items {
	return &items{inputs: inputs, object: newObjectDecoder(inputs), pace: newPace(budget)}
}

// read adds a record for each text of the ranges. look, if it is not nil, is asked after them; looked is
// its reply.
func (d *items) read(
	ctx context.Context, c redisconn.Conn, records []row.Record, look *redisconn.Command, ranges ...redisconn.Command,
) (_ []row.Record, looked []any, err error) {
	if look != nil {
		ranges = append(ranges, *look)
	}
	err = askTexts(ctx, c, false, func(a *redisconn.Answers) error {
		n := len(a.Sizes)
		if look != nil {
			looked, n = lastReply(a)
		}
		records = d.decode(records, a, n)
		return nil
	}, ranges...)
	return records, looked, err
}

// decode adds a record for each of the first n texts. All of them share one allocation. The key of
// a record is its whole text: a dead letter then has what no column is made of, too.
func (d *items) decode(records []row.Record, a *redisconn.Answers, n int) []row.Record {
	d.found = n
	raw, all := a.All, a.Take()
	width, at := len(d.inputs), 0
	raws := make([]row.Raw, n*width)
	for i, size := range a.Sizes[:n] {
		size = max(0, size) // of no text
		text := all[at : at+size]
		r := row.Record{Key: text, Inputs: raws[i*width : (i+1)*width : (i+1)*width]}
		r.Err = d.object.decode(text, raw[at:at+size], r.Inputs)
		for j, input := range d.inputs {
			if input == inputValue {
				r.Inputs[j] = row.Raw{Text: text, OK: true}
			}
		}
		records = append(records, r)
		at += size
	}
	d.pace.learn(n, at)
	return records
}
