// Package id makes identities that are never given twice.
package id

import (
	"fmt"

	uuid "github.com/satori/go.uuid"
)

// New makes a UUID v4: for terms, runs and batches. It is the only caller of that library. The
// error is the random source's.
func New() (string, error) {
	id, err := uuid.NewV4()
	if err != nil {
		return "", fmt.Errorf("make a UUID: %w", err)
	}
	return id.String(), nil
}
