// node sdk_clients.mjs NAME FOLDER: a conversation with the tool `weather`, streamed,
// through the library that NAME says, of the packages in FOLDER.
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [name, folder] = process.argv.slice(2);
const find = createRequire(join(folder, "package.json"));
const load = (library) => import(pathToFileURL(find.resolve(library)));
const { ASK } = process.env;
const MODEL = "gpt-5.4-mini";
const CLAUDE = "claude-sonnet-5-5";
const ABOUT = "The weather at a place.";
const SCHEMA = {
  type: "object",
  properties: { place: { type: "string" } },
  required: ["place"],
};
const weather = ({ place }) => `${place}-${6 * 7} degrees`;

async function openaiChat() {
  const { default: OpenAI } = await load("openai");
  const fn = { name: "weather", description: ABOUT, parameters: SCHEMA };
  const runner = new OpenAI().chat.completions.runTools({
    model: MODEL,
    stream: true,
    messages: [{ role: "user", content: ASK }],
    tools: [{ type: "function", function: { ...fn, parse: JSON.parse, function: weather } }],
  });
  return runner.finalContent();
}

async function openaiResponses() {
  const { default: OpenAI } = await load("openai");
  const client = new OpenAI();
  const input = [{ role: "user", content: ASK }];
  const tool = { type: "function", name: "weather", parameters: SCHEMA, strict: false };
  for (;;) {
    const stream = client.responses.stream({ model: MODEL, input, tools: [tool] });
    const response = await stream.finalResponse();
    const calls = response.output.filter((each) => each.type === "function_call");
    if (!calls.length) return response.output_text;
    input.push(...response.output);
    for (const { call_id, arguments: given } of calls) {
      const output = weather(JSON.parse(given));
      input.push({ type: "function_call_output", call_id, output });
    }
  }
}

async function anthropic() {
  const { default: Anthropic } = await load("@anthropic-ai/sdk");
  const client = new Anthropic();
  const messages = [{ role: "user", content: ASK }];
  const tools = [{ name: "weather", description: ABOUT, input_schema: SCHEMA }];
  for (;;) {
    const asked = { model: CLAUDE, max_tokens: 500, messages, tools };
    const { content } = await client.messages.stream(asked).finalMessage();
    const calls = content.filter((block) => block.type === "tool_use");
    if (!calls.length) return content[0].text;
    messages.push({ role: "assistant", content });
    const results = calls.map(({ id, input }) => ({
      type: "tool_result",
      tool_use_id: id,
      content: weather(input),
    }));
    messages.push({ role: "user", content: results });
  }
}

async function runAiSdk(model) {
  const { streamText, tool, jsonSchema, stepCountIs } = await load("ai");
  const tools = {
    weather: tool({ description: ABOUT, inputSchema: jsonSchema(SCHEMA), execute: weather }),
  };
  const result = streamText({ model, prompt: ASK, tools, stopWhen: stepCountIs(5) });
  return result.text;
}

async function aiSdk() {
  const { createOpenAICompatible } = await load("@ai-sdk/openai-compatible");
  const { OPENAI_BASE_URL: baseURL, OPENAI_API_KEY: apiKey } = process.env;
  return runAiSdk(createOpenAICompatible({ name: "windowpane", baseURL, apiKey })(MODEL));
}

async function aiSdkAnthropic() {
  const { createAnthropic } = await load("@ai-sdk/anthropic");
  const { ANTHROPIC_BASE_URL: site, ANTHROPIC_API_KEY: apiKey } = process.env;
  return runAiSdk(createAnthropic({ baseURL: `${site}/v1`, apiKey })(CLAUDE));
}

const clients = {
  "node-openai-chat": openaiChat,
  "node-openai-responses": openaiResponses,
  "node-anthropic": anthropic,
  "ai-sdk": aiSdk,
  "ai-sdk-anthropic": aiSdkAnthropic,
};
console.log(await clients[name]());
