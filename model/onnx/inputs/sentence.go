package inputs

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"tuner/model/onnx"
	"tuner/model/onnx/onnxpb"
)

// mostSentences bounds the sentences of an example text.
const mostSentences = 3

// sentences returns the parts of example texts. They have several lengths, numbers, marks, and words that
// no vocabulary has, since the time of a tokenizer and the number of its tokens depend on the text.
func sentences() []string {
	return []string{
		"Thank you.",
		"Where is my order?",
		"The train to Basel leaves at 17:42.",
		"It rained all day, so we stayed at home.",
		"She opened the window and looked at the sea.",
		"Please send the invoice again; the first one was lost.",
		"Water boils at a lower temperature in the mountains.",
		"The museum is closed on Mondays and on public holidays.",
		"How do I change the password of my account?",
		"Two of the three engines were replaced in 1998.",
		"The recipe needs 250 g of flour, two eggs and a pinch of salt.",
		"Most of the city was rebuilt after the fire, street by street.",
		"He had never seen snow before, and he laughed like a child.",
		"The committee will publish its report in the first week of March.",
		"This camera is light, but its battery lasts only for three hours.",
		"Bees find their way by the sun, even when clouds cover most of it.",
		"My parcel was delivered to a neighbour whose name I cannot read on the card.",
		"The new bridge shortens the way to the harbour by almost twenty minutes.",
		"Electrocardiograms of 1,204 patients were compared over a period of five years.",
		"If the lamp blinks red, hold the button for ten seconds, and start the device again.",
	}
}

// textReason says for people what example texts are, and for what.
func textReason(node *onnxpb.NodeProto) string {
	return fmt.Sprintf("texts of 1 to %d English sentences, for %s", mostSentences, node.GetOpType())
}

// drawText makes an example text.
func drawText(list []string, r *rand.Rand) []byte {
	parts := make([]string, 1+r.IntN(mostSentences))
	for i := range parts {
		parts[i] = list[r.IntN(len(list))]
	}
	return []byte(strings.Join(parts, " "))
}

// readsText reports whether an operator reads strings as language: those that split texts, and those
// of libraries, which are mostly tokenizers. Other operators look strings up, or parse numbers.
func readsText(node *onnxpb.NodeProto) bool {
	switch node.GetDomain() {
	case "", "ai.onnx", "ai.onnx.ml":
		return false
	case "com.microsoft":
		return node.GetOpType() == "Tokenizer"
	}
	return true
}

// Texts returns the inputs that get example texts, with the reason for people.
func Texts(m *onnx.Model) map[string]string {
	texts, flow := map[string]string{}, newFlow(m.Graph())
	for _, v := range m.Inputs() {
		if found := flow.trace(Input{Name: v.Name, Type: v.Type}); v.Type == onnx.String && found.text != "" {
			texts[v.Name] = found.text
		}
	}
	return texts
}
