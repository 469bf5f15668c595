package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// width is the largest width of a line in columns, if its parts allow it.
const width = 120

// lay prints JSON on one line if it fits after the used columns. Otherwise each member has its own
// line.
func lay(raw json.RawMessage, indent string, used int) (string, error) {
	open, parts, err := split(raw)
	if err != nil {
		return "", err
	}
	if open == 0 {
		return string(raw), nil
	}
	shut := string(open + 2) // ']' and '}' are two after '[' and '{'
	var flat, broken []string
	for _, p := range parts {
		line, err := lay(p.value, "", -1<<30)
		if err != nil {
			return "", err
		}
		flat = append(flat, p.key+line)
	}
	one := string(open) + strings.Join(flat, ", ") + shut
	if used+len(one) <= width {
		return one, nil
	}
	inner := indent + "  "
	for _, p := range parts {
		lines, err := lay(p.value, inner, len(inner)+len(p.key)+1)
		if err != nil {
			return "", err
		}
		broken = append(broken, inner+p.key+lines)
	}
	return string(open) + "\n" + strings.Join(broken, ",\n") + "\n" + indent + shut, nil
}

// piece is a member of an object, or an element of a list with the key "".
type piece struct {
	key   string // with quotes and colon
	value json.RawMessage
}

// split splits an object or a list. open is its bracket, 0 for other values.
func split(raw json.RawMessage) (open rune, parts []piece, err error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	first, err := decoder.Token()
	bracket, isOpen := first.(json.Delim)
	if err != nil || !isOpen {
		return 0, nil, err
	}
	for decoder.More() {
		var p piece
		if bracket == '{' {
			key, err := decoder.Token()
			if err != nil {
				return 0, nil, err
			}
			p.key = fmt.Sprintf("%q: ", key)
		}
		if err := decoder.Decode(&p.value); err != nil {
			return 0, nil, err
		}
		parts = append(parts, p)
	}
	return rune(bracket), parts, nil
}
