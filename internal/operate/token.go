package operate

import (
	"fmt"
	"os"
	"strings"
)

const (
	// LeastToken is the least length of a token: a random one of that length cannot be guessed.
	LeastToken = 16
	mostToken  = 1024
)

// ReadToken reads a file that holds the token of a node, or reports how the file is wrong.
func ReadToken(file string) (token string, err error) {
	const lineEnd = 2
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return "", err
	case !info.Mode().IsRegular(): // opening a pipe would wait for its writer
		return "", fmt.Errorf("%s is no regular file", file)
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
		return "", fmt.Errorf("%s: want one line of printable ASCII without blanks, for example of: openssl rand -hex 32", file)
	case len(token) < LeastToken:
		return "", fmt.Errorf("%s: the token has %d characters, and it takes %d at least; make one with: openssl rand -hex 32",
			file, len(token), LeastToken)
	case len(token) > mostToken:
		return "", errLongToken(file)
	}
	return token, nil
}

// unprintable reports whether a character is anything but printable ASCII, or is a blank.
func unprintable(r rune) bool { return r <= ' ' || r > '~' }

func errLongToken(file string) error {
	return fmt.Errorf("%s: the token has more than %d characters", file, mostToken)
}
