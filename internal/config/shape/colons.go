package shape

import (
	"unicode/utf8"

	"github.com/goccy/go-yaml/token"
)

// whole joins texts in flow lists that the scanner has split at a colon. Inside of braces, as in {cluster: [10.0.0.1:7000]}, the scanner
// treats the colon of the address as the colon of a key. In YAML a colon inside of a text ends the text only if a space follows.
func whole(all token.Tokens) token.Tokens {
	var out token.Tokens
	var lists []bool // whether each open bracket belongs to a list
	for i := 0; i < len(all); i++ {
		t := all[i]
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			lists = append(lists, t.Type == token.SequenceStartType)
		case token.SequenceEndType, token.MappingEndType:
			lists = lists[:max(len(lists)-1, 0)]
		case token.MappingValueType: // the colon
			inList := len(lists) > 0 && lists[len(lists)-1]
			if !inList || len(out) == 0 || i+1 == len(all) || !touch(out[len(out)-1], t) || !touch(t, all[i+1]) {
				break
			}
			before, after := out[len(out)-1], all[i+1]
			t = token.String(before.Value+t.Value+after.Value, before.Origin+t.Origin+after.Origin, before.Position)
			out = out[:len(out)-1]
			i++
		}
		out.Add(t)
	}
	return out
}

// touch reports whether a text without quotes and a colon follow each other without a space.
func touch(a, b *token.Token) bool {
	return plain(a) && plain(b) && a.Position.Line == b.Position.Line &&
		a.Position.Column+utf8.RuneCountInString(a.Value) == b.Position.Column
}

func plain(t *token.Token) bool {
	switch t.Type {
	case token.MappingValueType, token.StringType, token.IntegerType, token.BinaryIntegerType, token.OctetIntegerType,
		token.HexIntegerType, token.FloatType, token.BoolType, token.NullType, token.InfinityType, token.NanType:
		return t.Position != nil
	}
	return false
}
