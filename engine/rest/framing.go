package rest

import (
	"bytes"
	"net/http"

	"github.com/valyala/fasthttp"
)

// refusal is the answer to a request that is not served, whatever its body says.
type refusal struct {
	status int
	text   string
	isLast bool // nothing that follows on the connection can be trusted
}

// framed says why it is not certain where a request ends; nil: it is. fasthttp refuses most of such requests itself. What it
// lets pass is refused here, because a proxy in front may read it in another way, and take a part of this request for the next
// one, or the other way round (RFC 9112, sections 2.2, 5.1, 5.2, 6.1 and 11.2).
func framed(head *fasthttp.RequestHeader) *refusal {
	if p := head.Protocol(); string(p) != "HTTP/1.1" && string(p) != "HTTP/1.0" {
		return &refusal{fasthttp.StatusHTTPVersionNotSupported, "only HTTP/1.1 and HTTP/1.0 are served", true}
	}
	hasLength, hasEncoding := false, false
	for rest := head.RawHeaders(); len(rest) > 0; {
		var line []byte
		line, rest, _ = bytes.Cut(rest, []byte("\n"))
		line, isWhole := bytes.CutSuffix(line, []byte("\r"))
		if len(line) == 0 && isWhole {
			break
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		if !isWhole || bytes.IndexByte(name, ' ') >= 0 || bytes.IndexByte(name, '\t') >= 0 { // bare LF, a folded line, a gap in a name
			return malformed("its headers are not lines of the form NAME: VALUE")
		}
		switch {
		case isHeader(name, fasthttp.HeaderContentLength):
			hasLength = true
		case isHeader(name, fasthttp.HeaderTransferEncoding):
			hasEncoding = true
			if !bytes.EqualFold(bytes.TrimSpace(value), []byte("chunked")) {
				return malformed("Transfer-Encoding must be chunked")
			}
		}
	}
	if hasLength && hasEncoding {
		return malformed("it has both Content-Length and Transfer-Encoding")
	}
	return nil
}

func malformed(why string) *refusal {
	return &refusal{http.StatusBadRequest, "cannot read the request: " + why, true}
}

func isHeader(name []byte, header string) bool {
	return len(name) == len(header) && bytes.EqualFold(name, []byte(header))
}
