// Package id makes unique ids.
package id

import (
	"fmt"

	uuid "github.com/satori/go.uuid"
)

// New returns a UUID v4 for a term, a run or a batch. It returns an error if the source of random numbers fails. Only this function calls
// the library for UUIDs.
func New() (string, error) {
	id, err := uuid.NewV4()
	if err != nil {
		return "", fmt.Errorf("make a UUID: %w", err)
	}
	return id.String(), nil
}
