package postgres

import (
	"context"
	"encoding/hex"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"
)

func (t *session) Read(ctx context.Context, text string, args []any, each func(row []any) error) error {
	ctx, cancel := context.WithTimeout(ctx, t.db.limits.Trip)
	defer cancel()
	s := newStatement(text, args)
	if err := t.prepare(ctx, []statement{s}); err != nil {
		return err
	}
	reader := t.pg.ExecPrepared(ctx, s.name, s.params, nil, nil)
	var failed error
	for failed == nil && reader.NextRow() {
		row := make([]any, len(reader.Values()))
		for i, v := range reader.Values() {
			if row[i], failed = readValue(v, reader.FieldDescriptions()[i].DataTypeOID); failed != nil {
				break
			}
		}
		if failed == nil {
			failed = each(row)
		}
	}
	_, err := reader.Close()
	return errors.Join(failed, err)
}

// readValue reads a value from its text: a NULL, bytes, or a string.
func readValue(v []byte, oid uint32) (any, error) {
	switch {
	case v == nil:
		return nil, nil
	case oid == pgtype.ByteaOID:
		return hex.DecodeString(strings.TrimPrefix(string(v), `\x`))
	}
	return string(v), nil
}

// textArray writes an array as PostgreSQL reads it from text.
func textArray(elements []string) string {
	quoted := make([]string, len(elements))
	for i, e := range elements {
		quoted[i] = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(e) + `"`
	}
	return "{" + strings.Join(quoted, ",") + "}"
}
