package secret

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"baton/internal/text"
)

// readable is the maximum size in bytes of a file that baton reads for a secret or for the environment of a command.
const readable = 1 << 20

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// ReadEnvFile reads a file with lines of the form NAME=VALUE, and adds the variables to the map set. A value may be in quotes, which
// are not part of the value.
func ReadEnvFile(path string, set map[string]string) error {
	content, err := ReadBounded(path)
	if err != nil {
		return fmt.Errorf("env_file: %w", err)
	}
	lines := bufio.NewScanner(bytes.NewReader(content))
	lines.Buffer(nil, readable+1)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		wrong := "" // the line must not be quoted, because it may be a secret
		switch {
		case !ok:
			wrong = "write NAME=VALUE"
		case !variableName.MatchString(name):
			wrong = "a name has letters, digits and underscores only"
		case strings.HasPrefix(name, "BATON_"):
			wrong = "names that begin with BATON_ are reserved for baton"
		case strings.ContainsRune(value, 0):
			wrong = "the text has a NUL character"
		case value != "" && strings.ContainsRune(`"'`, rune(value[0])):
			if len(value) < 2 || value[len(value)-1] != value[0] {
				wrong = "the quote is not closed at the end of the line"
				break
			}
			value = value[1 : len(value)-1]
		}
		if wrong != "" {
			return fmt.Errorf("env_file %s, line %d: %s", path, n, wrong)
		}
		set[name] = value
	}
	return lines.Err()
}

// ReadFile returns the text of a file that has exactly one line.
func ReadFile(path string) (string, error) {
	content, err := ReadBounded(path)
	if err != nil {
		return "", err
	}
	value := strings.TrimSuffix(strings.TrimSuffix(string(content), "\n"), "\r")
	switch {
	case value == "":
		return "", fmt.Errorf("file %s is empty", path)
	case strings.ContainsAny(value, "\n\x00"):
		return "", fmt.Errorf("file %s is not one line of text", path)
	}
	return value, nil
}

// ReadBounded reads a regular file. It returns an error if the file is too large.
func ReadBounded(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular(): // reading a pipe could block the run
		return nil, fmt.Errorf("%s is not a regular file", path)
	case info.Size() > readable:
		return nil, errors.New(path + " has more than 1 MiB")
	}
	content, err := os.ReadFile(path)
	return text.WithoutMark(content), err
}
