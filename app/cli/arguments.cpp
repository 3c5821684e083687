#include "app/cli/arguments.h"

#include <algorithm>
#include <cstdlib>

namespace planloom::cli {

namespace {

Error usage(std::string message, const VerbSpec &verb)
{
    return {ErrorCode::InvalidInput, std::move(message),
        "planloom-cli " + verb.name + " --help lists the options", "command line"};
}

VerbSpec clusterVerb(const OptionSpec &json, const OptionSpec &help)
{
    return {"cluster", "",
        "makes a cluster file of times that were measured on a device: rates by number format and kind of "
        "kernel, links by nccl-tests; says how far off they are",
        {{"kernels", "FILE",
             "times of products, attention, experts and collectives (JSON: sections matmul, attention, moe, "
             "collective in rows of the columns that they name)"},
            {"collectives", "FILE",
                "what all_reduce_perf, all_gather_perf, ... of nccl-tests printed, one after the other; in "
                "place of the collectives of --kernels"},
            {"device", "NAME", "the device whose times count, of a file with those of several"},
            {"base", "C",
                "profile or JSON file that says what times can't: peaks, memory, links (default: the "
                "profile of the device)"},
            {"out", "FILE.json", "where to (default: standard output)"}, json, help}};
}

VerbSpec sessionVerb(const OptionSpec &json, const OptionSpec &help)
{
    return {"session", "FILE",
        "shows a session file (rows, history, branches, names, runs), checks and repairs it",
        {{"table", "", "print its constraint table"},
            {"check", "", "read everything in it and say what is wrong"},
            {"repair", "NEW", "write what can be read of a damaged session to a new file"}, json, help}};
}

} // namespace

namespace {

/// How a plan is made of rows that leave something open.
std::vector<OptionSpec> leftOpenOptions()
{
    return {{"allow-copies", "",
                "a gallery plan whose replicas compute more than half of the model alike is a plan, too"},
        {"no-search", "",
            "what rows leave open is decided by the default rule (follow the producer, else replicate), as "
            "with --gallery, not searched for the best"}};
}

} // namespace

Result<Arguments> Arguments::parse(const VerbSpec &verb, const std::vector<std::string> &words)
{
    Arguments arguments;
    const auto wanted = static_cast<std::size_t>(
        verb.positional.empty() ? 0 : 1 + std::count(verb.positional.begin(), verb.positional.end(), ' '));
    for (std::size_t i = 0; i < words.size(); ++i) {
        const std::string &word = words[i];
        if (word.rfind("--", 0) != 0 || word.size() == 2) {
            if (arguments.m_positional.size() == wanted)
                return usage(wanted == 0 ? "expected options alone, found \"" + word + "\""
                                         : std::string("expected ") + (wanted == 1 ? "one " : "")
                            + verb.positional + ", found \"" + word + "\" too",
                    verb);
            arguments.m_positional.push_back(word);
            continue;
        }
        const std::size_t equals = word.find('=');
        const std::string name = word.substr(2, equals == std::string::npos ? std::string::npos : equals - 2);
        const auto option = std::find_if(verb.options.begin(), verb.options.end(),
            [&](const OptionSpec &spec) { return spec.name == name; });
        if (option == verb.options.end())
            return usage("\"--" + name + "\" is no option of " + verb.name, verb);
        if (option->value.empty()) {
            if (equals != std::string::npos)
                return usage("--" + name + " takes no value", verb);
            arguments.m_options.emplace(name, "");
        } else if (equals != std::string::npos) {
            arguments.m_options.emplace(name, word.substr(equals + 1));
        } else if (i + 1 < words.size()) {
            arguments.m_options.emplace(name, words[++i]);
        } else {
            return usage("--" + name + " expects " + option->value, verb);
        }
    }
    if (arguments.m_positional.size() < wanted && !arguments.has("help"))
        return usage(verb.name + " expects " + verb.positional, verb);
    arguments.m_positional.resize(wanted);
    return arguments;
}

bool Arguments::has(std::string_view option) const
{
    return m_options.find(option) != m_options.end();
}

std::string Arguments::text(std::string_view option, std::string_view fallback) const
{
    // The last one wins, as users expect of repeated options.
    const auto [begin, end] = m_options.equal_range(option);
    return begin == end ? std::string(fallback) : std::prev(end)->second;
}

std::vector<std::string> Arguments::texts(std::string_view option) const
{
    std::vector<std::string> values;
    const auto [begin, end] = m_options.equal_range(option);
    for (auto it = begin; it != end; ++it)
        values.push_back(it->second);
    return values;
}

Result<std::int64_t> Arguments::integer(
    std::string_view option, std::int64_t fallback, std::int64_t least, std::int64_t most) const
{
    if (!has(option))
        return fallback;
    const std::string value = text(option);
    char *end = nullptr;
    errno = 0;
    const long long number = std::strtoll(value.c_str(), &end, 10);
    if (value.empty() || *end != '\0' || errno != 0 || number < least || number > most)
        return Error{ErrorCode::InvalidInput,
            "expected an integer from " + std::to_string(least) + " to " + std::to_string(most) + ", found \""
                + value + "\"",
            {}, "--" + std::string(option)};
    return static_cast<std::int64_t>(number);
}

Result<double> Arguments::real(std::string_view option, double fallback) const
{
    if (!has(option))
        return fallback;
    const std::string value = text(option);
    char *end = nullptr;
    const double number = std::strtod(value.c_str(), &end);
    if (value.empty() || *end != '\0' || !(number >= -1e30 && number <= 1e30))
        return Error{ErrorCode::InvalidInput, "expected a number, found \"" + value + "\"", {},
            "--" + std::string(option)};
    return number;
}

const std::vector<VerbSpec> &verbs()
{
    static const OptionSpec kJson{"json", "", "print one JSON object on standard output"};
    static const OptionSpec kHelp{"help", "", "show this help"};
    static const std::vector<OptionSpec> kModel{
        {"dim", "NAME=SIZE", "size of a dimension that the model's inputs leave open (may be repeated)"},
        {"parameter", "NAME", "a stored tensor that is trained, whatever the file says (may be repeated)"},
        {"constant", "NAME", "a stored tensor that is not trained (may be repeated)"},
        {"as-input", "NAME", "what is an input, whatever the file says or seems to say (may be repeated)"},
        {"operators", "FILE",
            "operator file that says what operators are (may be repeated; MODEL.ops beside the model is read "
            "anyway)"},
        {"capacity", "[NAME=]ROOM",
            "room in every sample for what data choose, as the tokens of an expert: 1.25x (of the expected "
            "load), 128, all; NAME: of one operator (may be repeated; default: 1x)"},
        {"unroll", "NAME|all",
            "an LSTM, GRU or RNN as the operators of its steps, so that its hidden dimension splits (may be "
            "repeated)"},
        {"loss", "NAME", "the output to train on (default: the scalar output \"loss\")"}, kJson, kHelp};
    static const std::vector<OptionSpec> kPlan{
        {"cluster", "C",
            "profile with a size (dgx-h100:8, cpu:4) or a JSON file (default: cpu with --devices)"},
        {"framework", "F",
            "what trains on it: megatron, fsdp, fsdp-compiled, deepspeed, nanotron or planloom (default: "
            "none; "
            "kernels as timings have them)"},
        {"devices", "N", "number of devices (default: the cluster's)"},
        {"gallery", "NAME[:KEY=VALUE,...]",
            "rows of a gallery plan, such as 3d:dp=2,tp=2,pp=2 (planloom-cli gallery all lists them)"},
        {"table", "FILE",
            "constraint table, text or JSON, or partition constraints of autodist (.yaml); its rows come "
            "after "
            "the gallery's"},
        {"axis", "NAME", "axis of the mesh that partition constraints of autodist are about (default: tp)"},
        {"micro-batches", "M", "number of micro-batches (a row of its own)"},
        {"recompute", "none|selective|full",
            "what the backward pass computes again: nothing, activations and norms, or every layer (a row of "
            "its "
            "own)"},
        {"zero", "0|1|2|3",
            "what replicas cut among themselves: nothing, optimizer states, gradients too, weights too (a "
            "row "
            "of its own)"},
        {"offload", "none|states|activations|both",
            "what waits in host memory: optimizer states, or what the backward pass reads (rows of their "
            "own)"},
        {"precision", "fp32|tf32|bf16|fp16|fp8",
            "number formats of all operators (a row of its own; default: bf16 on accelerators, fp32 on "
            "CPUs)"},
        {"attention", "fused|plain",
            "whether attentions keep their probabilities in memory (a row of its own; default: fused)"},
        {"optimizer", "sgd|adamw", "optimizer of the training step (default: adamw)"},
        {"learning-rate", "X", "its learning rate (default: 0.001)"},
        {"weight-decay", "X", "its weight decay (default: 0)"},
        {"clip-norm", "X", "clip gradients: at most so large is the norm of all of them (default: 0, any)"},
        {"inference", "", "plan the forward pass alone, also for a model with a loss"}};
    static const auto with = [](std::initializer_list<std::vector<OptionSpec>> lists) {
        std::vector<OptionSpec> all;
        for (const auto &list : lists)
            all.insert(all.end(), list.begin(), list.end());
        return all;
    };
    static const std::vector<VerbSpec> kVerbs{
        {"info", "MODEL", "operators, tensors, parameters, what was fused and what is not understood",
            kModel},
        {"solve", "MODEL",
            "finds the best plan within the rows; prints step time, memory, traffic and bubble per device",
            with({kPlan, leftOpenOptions(),
                {{"suggest", "",
                     "with --json: rows that would make the plan faster or smaller, each simulated"},
                    {"watch", "FILE",
                        "solves the table in FILE anew whenever it changes; a line for every grade of every "
                        "answer, until interrupted"},
                    {"schedule", "best|NAME",
                        "the order of the pipeline's blocks: 1f1b, zb-v, dualpipe, ... in place of the "
                        "rows'; best: the "
                        "shortest simulated step of all of them and of what a search finds"},
                    {"out", "PLAN", "write the plan to a file"}},
                kModel})},
        {"schedule", "PLACEMENT",
            "finds the best pipeline schedule for a placement of blocks (JSON), and proves how good it is; "
            "plays a schedule of torch.distributed.pipelining (CSV). A block that takes memory may have "
            "\"recompute\": {\"until\": ID, \"time\": T, \"memory\": M}: M of it is dropped and computed "
            "again by "
            "block ID, which takes T longer; and \"offload\": {..., \"queue\": Q, \"back_time\": T, "
            "\"back_queue\": Q}: M is copied away behind it, in T on queue Q, and back before block ID. The "
            "search decides which blocks do so. \"workspace\": M is held while a block runs; \"once\": true "
            "runs once a "
            "step, before the micro-batches (weights are gathered) or behind them (gradients are reduced)",
            {{"micro-batches", "N", "how many to schedule (default: enough to see the steady state)"},
                {"memory", "M", "limit of every device, in place of the file's"},
                {"template", "NAME",
                    "this schedule in place of a search: gpipe, 1f1b, interleaved, zb-v, dualpipe, ..."},
                {"time-limit", "S", "seconds (default: 5)"},
                {"picture", "FILE.svg", "write the schedule as a picture"},
                {"csv", "FILE", "write the order for torch.distributed.pipelining"},
                {"csv-format", "compute_only|compute_comms",
                    "whether it has what is communicated (default: as a CSV that was read, else "
                    "compute_only)"},
                kJson, kHelp}},
        {"simulate", "PLAN", "predicted timeline, memory and communication of a plan file",
            {{"cluster", "C", "another cluster than the plan was made for"},
                {"one-queue", "", "all communication waits in one queue, whatever the cluster says"},
                {"blocking-sends", "",
                    "a device computes nothing while it sends to another stage, whatever the cluster says"},
                {"trace", "FILE", "write the timeline as a Perfetto trace"},
                {"idle", "", "say why devices are idle, and how long for each reason"},
                {"peak", "", "say what the fullest device holds as it is fullest"}, kJson, kHelp}},
        {"fits", "PLAN|MODEL",
            "whether every rank's memory is enough, and what the fullest one holds: status 0 if it is, 1 if "
            "not",
            with({kPlan, leftOpenOptions(), kModel})},
        {"compare", "PLAN_A PLAN_B", "what plan B does differently from plan A, and where its time goes",
            {{"at-most", "RATIO", "exit with status 1 if B's step takes more than RATIO times A's"},
                {"cluster", "C", "another cluster than the plans were made for"}, kJson, kHelp}},
        {"check-annotation", "NAME|FILE",
            "tries out on numbers how operators may be split: one that Planloom knows, all, or those of an "
            "operator "
            "file",
            {{"operator", "NAME", "one operator of the file (default: all)"},
                {"size", "DIM=N", "size of a dimension of the annotation (may be repeated)"},
                {"shape", "INPUT=N,N",
                    "shape of an input that the annotation says nothing of (may be repeated)"},
                {"range", "INPUT=LOW:HIGH", "from where an input is drawn (may be repeated; default: -1:1)"},
                {"attribute", "NAME=X", "a number for an attribute that has no value (may be repeated)"},
                {"type", "float32|float64", "of inputs (default: float64 for bodies, float32 for libraries)"},
                {"tolerance", "X", "largest difference (default: 1e-10 for float64, 1e-5 for float32)"},
                {"seed", "S", "of the drawn numbers (default: 1)"}, kJson, kHelp}},
        {"verify", "PLAN", "proves from masks that the plan computes its model, or says where it does not",
            {kJson, kHelp}},
        {"run", "MODEL|PLAN", "executes on GPUs, or on emulated devices of the CPU or of one GPU",
            with({kPlan,
                {{"backend", "cpu",
                     "what executes: cpu (the default); cuda: each device on a GPU of this machine, in a "
                     "process of its own; or cuda-emulated: all devices on one GPU"},
                    {"steps", "K", "training steps (default: 1)"},
                    {"inputs", "PATH",
                        "an .npz with in.<name> members, or a folder of <name>.npy (default: drawn)"},
                    {"data", "PATH|synthetic",
                        "batches: a folder with an .npz or a folder of <input>.npy for each step, or arrays "
                        "with the "
                        "steps as their first dimension; synthetic: drawn anew in each step (default: every "
                        "step has "
                        "the same batch)"},
                    {"rate-schedule", "constant|cosine[:KEY=N,...]",
                        "of the learning rate: constant:warmup=10, or "
                        "cosine:warmup=10,total=100,floor=0.1, a share of the rate (default: constant; "
                        "total: "
                        "the run's "
                        "last step)"},
                    {"checkpoint", "DIR",
                        "write weights and optimizer states there at the end, and when Ctrl-C stops the run, "
                        "as step-N.safetensors"},
                    {"checkpoint-every", "K", "and after every K steps"},
                    {"resume", "PATH",
                        "go on from a checkpoint, or from the last one of a folder, under this plan, for "
                        "--steps more steps"},
                    {"dump", "DIR", "write loss.npy, out/, grad/ and weight/ as .npy files"},
                    {"check", "", "compare with the unpartitioned model"},
                    {"ranks", "N",
                        "processes that hold the devices, with the same outcome (default: 1; at most one a "
                        "device)"},
                    {"no-sharing", "",
                        "devices on the CPU compute everything themselves, also what another one computes "
                        "alike: slower, the same bits"},
                    {"prepare", "DIR",
                        "write what planloom-exec runs, plan.json and options.json, and run nothing"},
                    {"allow-library", "PATH",
                        "shared library of an operator file that may run (may be repeated; those of files "
                        "named with --operators and in the user's folder may)"},
                    {"seed", "S", "seed of dropout and drawn inputs (default: 1)"},
                    {"random-weights", "S", "draw weights that have no values, from this seed"},
                    {"trace", "FILE", "write the predicted timeline as a Perfetto trace"}},
                kModel})},
        {"export", "PLAN", "writes a plan for another tool",
            {{"format", "perfetto", "the format"}, {"out", "FILE", "where to (default: standard output)"},
                {"cluster", "C", "another cluster than the plan was made for"}, kJson, kHelp}},
        {"gallery", "NAME[:KEY=VALUE,...]|all",
            "lists the gallery's plans; shows one; with --model, the rows that it makes and their effect",
            with({kPlan, {{"model", "MODEL", "the model that the rows are for"}}, kModel})},
        {"rows", "MODEL|PLAN",
            "prints or writes the rows of a gallery plan and a table, checked, or of a plan file",
            with({kPlan,
                {{"out", "FILE",
                    "where to: text, .json, or .yaml for the partition constraints of autodist that they "
                    "hold "
                    "(default: standard output)"}},
                kModel})},
        clusterVerb(kJson, kHelp), sessionVerb(kJson, kHelp)};
    return kVerbs;
}

std::string helpOf(const VerbSpec &verb)
{
    std::string text =
        "planloom-cli " + verb.name + " " + verb.positional + " [options]: " + verb.meaning + "\n";
    for (const OptionSpec &option : verb.options) {
        std::string left = "  --" + option.name + (option.value.empty() ? "" : " " + option.value);
        left.resize(std::max<std::size_t>(left.size() + 2, 34), ' ');
        text += left + option.meaning + "\n";
    }
    return text;
}

std::string help()
{
    std::string text = "planloom-cli VERB ...: plans of distributed training, from the command line\n\n";
    for (const VerbSpec &verb : verbs()) {
        std::string left = "  " + verb.name + " " + verb.positional;
        left.resize(std::max<std::size_t>(left.size() + 2, 22), ' ');
        text += left + verb.meaning + "\n";
    }
    return text
        + "\nMODEL is an .onnx or .pt2 file or a zoo model (zoo:gpt?layers=12&hidden=768). planloom-cli VERB "
          "--help "
          "lists a "
          "verb's options.\nExit status: 0 done; 1 the work failed; 2 wrong usage or bad input; 3 the rows "
          "conflict.\n";
}

} // namespace planloom::cli
