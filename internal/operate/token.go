package operate

import (
	"fmt"
	"os"
	"strings"
)

const (
	// LeastToken is the minimum length of a token, in characters. A random token of that length cannot be guessed.
	LeastToken = 16
	mostToken  = 1024
)

// ReadToken reads a node's token from a file. Its error names the problem of the file.
func ReadToken(file string) (token string, err error) {
	const lineEnd = 2
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return "", err
	case !info.Mode().IsRegular(): // opening a pipe would wait for its writer
		return "", fmt.Errorf("%s is not a regular file", file)
	case info.Size() > mostToken+lineEnd:
		return "", errLongToken(file)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	token = strings.TrimRight(string(text), "\r\n")
	switch {
	case strings.ContainsFunc(token, unprintable):
		return "", fmt.Errorf("%s: the file must contain one line of printable ASCII without spaces, for example from: "+
			"openssl rand -hex 32", file)
	case len(token) < LeastToken:
		return "", fmt.Errorf("%s: the token has %d characters, but it needs at least %d; make a token with: openssl rand -hex 32",
			file, len(token), LeastToken)
	case len(token) > mostToken:
		return "", errLongToken(file)
	}
	return token, nil
}

// unprintable reports whether a character is a blank, or is not a printable ASCII character.
func unprintable(r rune) bool { return r <= ' ' || r > '~' }

func errLongToken(file string) error {
	return fmt.Errorf("%s: the token has more than %d characters", file, mostToken)
}
