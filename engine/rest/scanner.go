package rest

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth bounds how deep arrays and objects of a request may nest.
const maxDepth = 100

// scanner reads JSON from memory without building a tree: the caller asks for what it expects. Unlike encoding/json it
// accepts NaN and Infinity, which the protocol allows.
type scanner struct {
	data  []byte
	pos   int
	depth int
}

// kindError says that a value is not of the kind that is expected.
type kindError struct{ kind string }

func (e *kindError) Error() string {
	return "attempt to access JSON non-" + e.kind + " as " + e.kind
}

// expect returns the error for a value of another kind; what is no value at all is a syntax error.
func (s *scanner) expect(kind string) error {
	at := s.pos
	if _, err := s.skip(); err != nil {
		return err
	}
	s.pos = at
	return &kindError{kind}
}

// syntaxError says what is wrong where.
func (s *scanner) syntaxError(what string) error {
	return fmt.Errorf("%s at %d", what, s.pos)
}

// peek skips white space and returns the next byte, 0 at the end.
func (s *scanner) peek() byte {
	for s.pos < len(s.data) {
		switch c := s.data[s.pos]; c {
		case ' ', '\t', '\r', '\n':
			s.pos++
		default:
			return c
		}
	}
	return 0
}

// take consumes c, if it comes next.
func (s *scanner) take(c byte) bool {
	if s.peek() != c {
		return false
	}
	s.pos++
	return true
}

// end requires that nothing follows.
func (s *scanner) end() error {
	if s.peek() != 0 || s.pos < len(s.data) {
		return s.syntaxError("The document root must not be followed by other values.")
	}
	return nil
}

// object reads an object and calls f for each key; f must consume the value.
func (s *scanner) object(f func(key string) error) error {
	if !s.take('{') {
		return s.expect("object")
	}
	return s.members('}', "Missing a comma or '}' after an object member.", func() error {
		if s.peek() != '"' {
			return s.syntaxError("Missing a name for object member.")
		}
		key, err := s.text()
		if err != nil {
			return err
		}
		if !s.take(':') {
			return s.syntaxError("Missing a colon after a name of object member.")
		}
		return f(key)
	})
}

// array reads an array and calls f before each element; f must consume it.
func (s *scanner) array(f func() error) error {
	if !s.take('[') {
		return s.expect("array")
	}
	return s.members(']', "Missing a comma or ']' after an array element.", f)
}

// members reads what stands between brackets, of which the first is consumed already.
func (s *scanner) members(end byte, unfinished string, f func() error) error {
	if s.depth++; s.depth > maxDepth {
		return s.syntaxError("Nested too deep.")
	}
	defer func() { s.depth-- }()
	if s.take(end) {
		return nil
	}
	for {
		if err := f(); err != nil {
			return err
		}
		switch {
		case s.take(end):
			return nil
		case !s.take(','):
			return s.syntaxError(unfinished)
		}
	}
}

// text reads a string.
func (s *scanner) text() (string, error) {
	raw, escaped, err := s.rawText()
	if err != nil {
		return "", err
	}
	if !escaped {
		return string(raw), nil
	}
	out, err := unescape(nil, raw)
	return string(out), err
}

// rawText reads a string and returns what stands between its quotes.
func (s *scanner) rawText() (raw []byte, escaped bool, err error) {
	if !s.take('"') {
		return nil, false, s.expect("string")
	}
	start := s.pos
	for s.pos < len(s.data) {
		switch c := s.data[s.pos]; {
		case c == '"':
			s.pos++
			return s.data[start : s.pos-1], escaped, nil
		case c == '\\':
			escaped = true
			s.pos += 2
		case c < ' ':
			return nil, false, s.syntaxError("Invalid control character in string.")
		default:
			s.pos++
		}
	}
	s.pos = len(s.data)
	return nil, false, s.syntaxError("Missing a closing quotation mark in string.")
}

//lint:ignore ST1005 the protocol's wording
var errEscape = errors.New("Invalid escape character in string.")

// unescape appends raw, without its escapes, to dst.
func unescape(dst, raw []byte) ([]byte, error) {
	for len(raw) > 0 {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			return append(dst, raw...), nil
		}
		dst = append(dst, raw[:i]...)
		raw = raw[i+1:]
		if len(raw) == 0 {
			return nil, errEscape
		}
		c := raw[0]
		raw = raw[1:]
		if c == 'u' {
			r, rest, err := unescapeUnicode(raw)
			if err != nil {
				return nil, err
			}
			dst, raw = utf8.AppendRune(dst, r), rest
			continue
		}
		plain := bytes.IndexByte([]byte(`"\/bfnrt`), c)
		if plain < 0 {
			return nil, errEscape
		}
		dst = append(dst, "\"\\/\b\f\n\r\t"[plain])
	}
	return dst, nil
}

// unescapeUnicode reads the hexadecimal digits of one \u escape, or of a pair of them.
func unescapeUnicode(raw []byte) (rune, []byte, error) {
	first, raw, err := hex4(raw)
	if err != nil || !utf16.IsSurrogate(first) {
		return first, raw, err
	}
	if !bytes.HasPrefix(raw, []byte(`\u`)) {
		return 0, nil, errEscape
	}
	second, raw, err := hex4(raw[2:])
	r := utf16.DecodeRune(first, second)
	if err == nil && r == utf8.RuneError {
		err = errEscape
	}
	return r, raw, err
}

func hex4(raw []byte) (rune, []byte, error) {
	if len(raw) < 4 {
		return 0, nil, errEscape
	}
	n, err := strconv.ParseUint(string(raw[:4]), 16, 16)
	if err != nil {
		return 0, nil, errEscape
	}
	return rune(n), raw[4:], nil
}

// word reads a number or a literal (true, NaN, …) and returns it as it stands.
func (s *scanner) word() ([]byte, error) {
	s.peek()
	start := s.pos
	for s.pos < len(s.data) && isWord(s.data[s.pos]) {
		s.pos++
	}
	if s.pos == start {
		return nil, s.syntaxError("Invalid value.")
	}
	return s.data[start:s.pos], nil
}

func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-' || c == '+' || c == '.'
}

// skip reads any value and returns it as it stands.
func (s *scanner) skip() ([]byte, error) {
	c := s.peek()
	start := s.pos
	var err error
	switch c {
	case '{':
		err = s.object(func(string) error { return s.skipOne() })
	case '[':
		err = s.array(s.skipOne)
	case '"':
		_, _, err = s.rawText()
	default:
		var w []byte
		if w, err = s.word(); err == nil && !isLiteral(w) {
			s.pos = start
			err = s.syntaxError("Invalid value.")
		}
	}
	return s.data[start:s.pos], err
}

func (s *scanner) skipOne() error {
	_, err := s.skip()
	return err
}

func isLiteral(w []byte) bool {
	switch string(w) {
	case "true", "false", "null":
		return true
	}
	_, err := strconv.ParseFloat(string(w), 64)
	return err == nil || errors.Is(err, strconv.ErrRange)
}
